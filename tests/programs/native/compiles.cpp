// HLSL compiled in the program by the library of DXC that the argument names, in one file with d3d12.h.

#include <d3d12.h>
#include <directx/d3d12shader.h>
#include <dxcapi.h>

#include "program.h"

#include <dlfcn.h>

static const char SOURCE[] = "RWStructuredBuffer<uint> counts : register(u3, space2);\n"
                             "[numthreads(8, 4, 1)] void main(uint3 at : SV_DispatchThreadID) { counts[at.x] = at.y; }";

int main(int, char **arguments)
{
    void *library = dlopen(arguments[1], RTLD_NOW);
    const auto create = library ? reinterpret_cast<DxcCreateInstanceProc>(dlsym(library, "DxcCreateInstance")) : nullptr;
    if (!create) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    ComPtr<IDxcUtils> utils;
    ComPtr<IDxcCompiler3> compiler;
    CHECK(create(CLSID_DxcUtils, IID_PPV_ARGS(&utils)));
    CHECK(create(CLSID_DxcCompiler, IID_PPV_ARGS(&compiler)));

    const DxcBuffer source = {SOURCE, sizeof SOURCE - 1, DXC_CP_UTF8};
    LPCWSTR words[] = {L"-T", L"cs_6_0", L"-Zi"};
    ComPtr<IDxcResult> result;
    CHECK(compiler->Compile(&source, words, ARRAYSIZE(words), nullptr, IID_PPV_ARGS(&result)));
    HRESULT status = E_FAIL;
    CHECK(result->GetStatus(&status));
    CHECK(status);

    ComPtr<IDxcBlob> code, reflected, debug;
    ComPtr<IDxcBlobUtf16> name;
    CHECK(result->GetOutput(DXC_OUT_OBJECT, IID_PPV_ARGS(&code), nullptr));
    CHECK(result->GetOutput(DXC_OUT_REFLECTION, IID_PPV_ARGS(&reflected), nullptr));
    CHECK(result->GetOutput(DXC_OUT_PDB, IID_PPV_ARGS(&debug), &name));
    std::printf("%.4s, %zu characters and .pdb\n", static_cast<const char *>(code->GetBufferPointer()),
                name->GetStringLength() - 4);

    const DxcBuffer described = {reflected->GetBufferPointer(), reflected->GetBufferSize(), DXC_CP_ACP};
    ComPtr<ID3D12ShaderReflection> shader;
    CHECK(utils->CreateReflection(&described, IID_PPV_ARGS(&shader)));
    D3D12_SHADER_INPUT_BIND_DESC input = {};
    CHECK(shader->GetResourceBindingDesc(0, &input));
    UINT x = 0, y = 0, z = 0;
    shader->GetThreadGroupSize(&x, &y, &z);
    std::printf("%s: u%u, space%u; %u x %u x %u threads\n", input.Name, input.BindPoint, input.Space, x, y, z);
}
