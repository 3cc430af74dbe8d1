// NULL and unknown values where the API takes none: what the reports call them.

#include "program.h"

int main()
{
    Gpu gpu;
    void *out = nullptr;
    D3D12CreateDevice(nullptr, static_cast<D3D_FEATURE_LEVEL>(0x1234), __uuidof(ID3D12Device), &out);
    gpu.device->CreateHeap(nullptr, __uuidof(ID3D12Heap), &out);
    gpu.device->CreateCommandQueue(nullptr, __uuidof(ID3D12CommandQueue), &out);
    D3D12_FEATURE_DATA_FEATURE_LEVELS levels = {};
    gpu.device->CheckFeatureSupport(D3D12_FEATURE_FEATURE_LEVELS, &levels, 3);
    const DML_OPERATOR_DESC desc = {DML_OPERATOR_ELEMENT_WISE_IDENTITY, nullptr};
    gpu.dml->CreateOperator(&desc, __uuidof(IDMLOperator), &out);
    DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT type = {DML_TENSOR_DATA_TYPE_FLOAT32};
    gpu.dml->CheckFeatureSupport(DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT, 5, &type, 4, &out);
    gpu.list->CopyResource(nullptr, nullptr);
    IDMLCommandRecorder *recorder = nullptr;
    gpu.dml->CreateCommandRecorder(IID_PPV_ARGS(&recorder));
    recorder->RecordDispatch(nullptr, nullptr, nullptr);
    recorder->Release();
    DMLCreateDevice(nullptr, DML_CREATE_DEVICE_FLAG_NONE, __uuidof(IDMLDevice), &out);
}
