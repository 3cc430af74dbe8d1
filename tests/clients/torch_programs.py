"""Programs of PyTorch, each on torch_directml's device beside the CPU; run by test_torch.py.

torch_programs.py NAME: prints what differs from the CPU, and what the package computes on the CPU itself
(it announces that), as JSON. The Python that runs it has torch and torch_directml.
"""

import json
import re
import sys
import warnings

import torch
from torch.utils.data import DataLoader, TensorDataset

CPU = torch.device("cpu")


def images(count):
    """Pictures of ten classes: a pattern of each class with noise, and their numbers."""
    source = torch.Generator().manual_seed(5)
    patterns = torch.rand(10, 1, 12, 12, generator=source)
    labels = torch.arange(count) % 10
    return patterns[labels] + 0.3 * torch.randn(count, 1, 12, 12, generator=source), labels


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 16, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 3 * 3, 10),
    )


def trained(device, batches, epochs):
    """The losses of a training, and the share of pictures that it classifies rightly."""
    model, losses = network().to(device), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(epochs):
        for pictures, labels in batches():
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(pictures.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            losses.append(loss.detach().cpu())
    model.eval()
    pictures, labels = images(200)
    right = (model(pictures.to(device)).argmax(1).cpu() == labels).float().mean()
    return torch.stack(losses), right, *(each.detach().cpu() for each in model.state_dict().values())


def cnn(device):
    """A convolutional network is trained."""
    pictures, labels = images(200)
    data = [(pictures[at : at + 20], labels[at : at + 20]) for at in range(0, 200, 20)]
    return trained(device, lambda: data, 4)


def workers(device, context):
    """The same from the processes of a DataLoader, after the device has computed in this one."""
    torch.ones(2).to(device).add(1).cpu()
    data = TensorDataset(*images(80))
    return trained(device, lambda: DataLoader(data, 20, num_workers=2, multiprocessing_context=context), 2)


class Lstm(torch.nn.Module):
    """Of linear layers: the package has no kernel for the fused cell of torch.nn.LSTM."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.gates = torch.nn.Linear(inputs + hidden, 4 * hidden)

    def forward(self, given):
        size = self.gates.out_features // 4
        hidden = cell = given.new_zeros(given.shape[0], size)
        results = []
        for step in given.unbind(1):
            one, other, new, out = self.gates(torch.cat([step, hidden], 1)).split(size, 1)
            cell = torch.sigmoid(other) * cell + torch.sigmoid(one) * torch.tanh(new)
            hidden = torch.sigmoid(out) * torch.tanh(cell)
            results.append(hidden)
        return torch.stack(results, 1)


def lstm(device):
    """Two layers of LSTM, forward and backward."""
    torch.manual_seed(4)
    model = torch.nn.Sequential(Lstm(6, 8), Lstm(8, 8)).to(device)
    results = model(torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(9)).to(device))
    results.sum().backward()
    return [each.detach().cpu() for each in (results, *(p.grad for p in model.parameters()))]


def transformer(device):
    """An encoder's layer: three steps of training, then inference."""
    torch.manual_seed(6)
    torch.backends.mha.set_fastpath_enabled(False)  # a kernel that the package does not have
    model = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True).to(device)
    given = torch.randn(2, 7, 16, generator=torch.Generator().manual_seed(9)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(given).square().mean().backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return [each.detach().cpu() for each in (model(given), *model.parameters())]


PROGRAMS = {
    "cnn": cnn,
    "workers_fork": lambda device: workers(device, "fork"),
    "workers_spawn": lambda device: workers(device, "spawn"),
    "lstm": lstm,
    "transformer": transformer,
}


def main():
    import torch_directml

    torch.set_num_threads(1)
    torch.set_warn_always(True)
    program, differences = PROGRAMS[sys.argv[1]], []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = program(torch_directml.device())
    for place, (one, other) in enumerate(zip(found, program(CPU), strict=True)):
        try:
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
        except AssertionError as error:
            differences.append(f"result {place}: {error}")
    pattern = re.compile(r"operator '?([\w:.]+).*fall back", re.DOTALL)
    fell = sorted({match.group(1) for each in said for match in [pattern.search(str(each.message))] if match})
    print(json.dumps({"differences": differences, "fell": fell}))


if __name__ == "__main__":
    main()
