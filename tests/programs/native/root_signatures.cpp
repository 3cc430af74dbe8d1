// Root signatures without a device: serialized, refused with a text, and read in both versions.

#include "program.h"

using Serialized = ComPtr<ID3DBlob>;

static void print(const char *name, ID3DBlob *blob)
{
    std::printf("%s ", name);
    for (SIZE_T i = 0; i < blob->GetBufferSize(); i++)
        std::printf("%02x", static_cast<const unsigned char *>(blob->GetBufferPointer())[i]);
    std::printf("\n");
}

// --- two versions of one root signature ---

static const D3D12_DESCRIPTOR_RANGE ranges[] = {
    {D3D12_DESCRIPTOR_RANGE_TYPE_SRV, 4, 3, 0, D3D12_DESCRIPTOR_RANGE_OFFSET_APPEND},
    {D3D12_DESCRIPTOR_RANGE_TYPE_UAV, UINT_MAX, 1, 2, 9},
};
static const D3D12_DESCRIPTOR_RANGE1 ranges1[] = {
    {D3D12_DESCRIPTOR_RANGE_TYPE_SRV, 4, 3, 0, D3D12_DESCRIPTOR_RANGE_FLAG_DATA_STATIC,
     D3D12_DESCRIPTOR_RANGE_OFFSET_APPEND},
    {D3D12_DESCRIPTOR_RANGE_TYPE_UAV, UINT_MAX, 1, 2, D3D12_DESCRIPTOR_RANGE_FLAG_DESCRIPTORS_VOLATILE, 9},
};

static D3D12_STATIC_SAMPLER_DESC sampler()
{
    D3D12_STATIC_SAMPLER_DESC made = {};
    made.Filter = D3D12_FILTER_MIN_MAG_MIP_LINEAR;
    made.AddressU = made.AddressV = made.AddressW = D3D12_TEXTURE_ADDRESS_MODE_BORDER;
    made.MipLODBias = -1.5f;
    made.MaxLOD = D3D12_FLOAT32_MAX;
    made.ShaderRegister = 7;
    made.ShaderVisibility = D3D12_SHADER_VISIBILITY_PIXEL;
    return made;
}

template <typename Parameter, typename Range> static void fill(Parameter (&made)[4], const Range (&table)[2])
{
    std::memset(static_cast<void *>(made), 0, sizeof made);
    made[0].ParameterType = D3D12_ROOT_PARAMETER_TYPE_DESCRIPTOR_TABLE;
    made[0].DescriptorTable = {2, table};
    made[1].ParameterType = D3D12_ROOT_PARAMETER_TYPE_32BIT_CONSTANTS;
    made[1].Constants = {1, 2, 3};
    made[2].ParameterType = D3D12_ROOT_PARAMETER_TYPE_CBV;
    made[2].ShaderVisibility = D3D12_SHADER_VISIBILITY_MESH;
    made[3].ParameterType = D3D12_ROOT_PARAMETER_TYPE_UAV;
    made[3].Descriptor.ShaderRegister = 5;
    made[3].Descriptor.RegisterSpace = 6;
}

static Serialized version_1_0()
{
    const D3D12_STATIC_SAMPLER_DESC samplers[] = {sampler()};
    D3D12_ROOT_PARAMETER parameters[4];
    fill(parameters, ranges);
    const D3D12_ROOT_SIGNATURE_DESC desc = {4, parameters, 1, samplers,
                                            D3D12_ROOT_SIGNATURE_FLAG_DENY_PIXEL_SHADER_ROOT_ACCESS};
    Serialized blob, error;
    CHECK(D3D12SerializeRootSignature(&desc, D3D_ROOT_SIGNATURE_VERSION_1, &blob, &error));
    if (error)
        std::printf("an error blob beside a root signature\n");
    return blob;
}

static Serialized version_1_1()
{
    D3D12_ROOT_PARAMETER1 parameters[4];
    fill(parameters, ranges1);
    parameters[3].Descriptor.Flags = D3D12_ROOT_DESCRIPTOR_FLAG_DATA_STATIC;
    D3D12_VERSIONED_ROOT_SIGNATURE_DESC desc = {};
    desc.Version = D3D_ROOT_SIGNATURE_VERSION_1_1;
    desc.Desc_1_1 = {4, parameters, 0, nullptr, D3D12_ROOT_SIGNATURE_FLAG_NONE};
    Serialized blob;
    CHECK(D3D12SerializeVersionedRootSignature(&desc, &blob, nullptr));
    return blob;
}

// --- reading ---

static void print(const D3D12_DESCRIPTOR_RANGE1 &range) { std::printf(" flags 0x%X", range.Flags); }
static void print(const D3D12_DESCRIPTOR_RANGE &) {}
static void print(const D3D12_ROOT_DESCRIPTOR1 &descriptor) { std::printf(" flags 0x%X", descriptor.Flags); }
static void print(const D3D12_ROOT_DESCRIPTOR &) {}

template <typename Desc> static void print(const char *name, const Desc &desc)
{
    std::printf("%s: flags 0x%X, %u samplers\n", name, desc.Flags, desc.NumStaticSamplers);
    for (UINT i = 0; i < desc.NumParameters; i++) {
        const auto &each = desc.pParameters[i];
        std::printf("  type %d, visibility %d:", each.ParameterType, each.ShaderVisibility);
        if (each.ParameterType == D3D12_ROOT_PARAMETER_TYPE_DESCRIPTOR_TABLE)
            for (UINT j = 0; j < each.DescriptorTable.NumDescriptorRanges; j++) {
                const auto &range = each.DescriptorTable.pDescriptorRanges[j];
                std::printf(" [%d %u %u %u %u", range.RangeType, range.NumDescriptors, range.BaseShaderRegister,
                            range.RegisterSpace, range.OffsetInDescriptorsFromTableStart);
                print(range);
                std::printf("]");
            }
        else if (each.ParameterType == D3D12_ROOT_PARAMETER_TYPE_32BIT_CONSTANTS)
            std::printf(" %u %u %u", each.Constants.ShaderRegister, each.Constants.RegisterSpace,
                        each.Constants.Num32BitValues);
        else {
            std::printf(" %u %u", each.Descriptor.ShaderRegister, each.Descriptor.RegisterSpace);
            print(each.Descriptor);
        }
        std::printf("\n");
    }
    for (UINT i = 0; i < desc.NumStaticSamplers; i++) {
        const D3D12_STATIC_SAMPLER_DESC &each = desc.pStaticSamplers[i], expected = sampler();
        std::printf("  sampler s%u is %s\n", each.ShaderRegister,
                    std::memcmp(&each, &expected, sizeof each) == 0 ? "whole" : "another");
    }
}

static void read(Serialized blob)
{
    ComPtr<ID3D12VersionedRootSignatureDeserializer> versioned;
    CHECK(D3D12CreateVersionedRootSignatureDeserializer(blob->GetBufferPointer(), blob->GetBufferSize(),
                                                        IID_PPV_ARGS(&versioned)));
    ComPtr<ID3D12RootSignatureDeserializer> plain;
    CHECK(D3D12CreateRootSignatureDeserializer(blob->GetBufferPointer(), blob->GetBufferSize(), IID_PPV_ARGS(&plain)));
    std::memset(blob->GetBufferPointer(), 0xFF, blob->GetBufferSize());
    blob.Reset(); // neither needs it any more

    const D3D12_VERSIONED_ROOT_SIGNATURE_DESC *own = versioned->GetUnconvertedRootSignatureDesc();
    const D3D12_VERSIONED_ROOT_SIGNATURE_DESC *found[3] = {};
    for (UINT version = 1; version < 3; version++) {
        CHECK(versioned->GetRootSignatureDescAtVersion(static_cast<D3D_ROOT_SIGNATURE_VERSION>(version),
                                                       &found[version]));
        if (found[version]->Version != static_cast<D3D_ROOT_SIGNATURE_VERSION>(version))
            std::printf("another version\n");
    }
    print("at version 1.0", found[1]->Desc_1_0);
    print("at version 1.1", found[2]->Desc_1_1);
    std::printf("%s\n", own == found[own->Version] ? "its own is not converted" : "its own is another");
    const D3D12_VERSIONED_ROOT_SIGNATURE_DESC *wrong = own;
    const HRESULT refused = versioned->GetRootSignatureDescAtVersion(static_cast<D3D_ROOT_SIGNATURE_VERSION>(0), &wrong);
    std::printf("version 0: 0x%08X %s\n", static_cast<unsigned>(refused), wrong ? "kept" : "NULL");
    if (plain->GetRootSignatureDesc() != plain->GetRootSignatureDesc())
        std::printf("two descs\n");
    print("of the other deserializer", *plain->GetRootSignatureDesc());
}

// --- refusals ---

static void refuse(const char *name, const D3D12_ROOT_SIGNATURE_DESC *desc, D3D_ROOT_SIGNATURE_VERSION version)
{
    ID3DBlob *blob = reinterpret_cast<ID3DBlob *>(&desc);
    Serialized error;
    const HRESULT result = D3D12SerializeRootSignature(desc, version, &blob, &error);
    std::printf("%s: 0x%08X %s\n", name, static_cast<unsigned>(result), blob ? "a blob" : "NULL");
    if (!error)
        return;
    const char *text = static_cast<const char *>(error->GetBufferPointer());
    std::printf("%s%s\n", text, error->GetBufferSize() == std::strlen(text) + 1 ? "(whole)" : "(cut)");
}

static void refusals()
{
    D3D12_ROOT_PARAMETER parameters[4];
    fill(parameters, ranges);
    parameters[3] = parameters[1];
    D3D12_ROOT_SIGNATURE_DESC desc = {4, parameters, 0, nullptr, D3D12_ROOT_SIGNATURE_FLAG_NONE};
    refuse("a register of two", &desc, D3D_ROOT_SIGNATURE_VERSION_1_0);
    refuse("another version", &desc, D3D_ROOT_SIGNATURE_VERSION_1_1);
    refuse("no desc", nullptr, D3D_ROOT_SIGNATURE_VERSION_1_0);
    desc.pParameters = nullptr;
    refuse("no array", &desc, D3D_ROOT_SIGNATURE_VERSION_1_0);
    desc.NumParameters = 0;
    const HRESULT result = D3D12SerializeRootSignature(&desc, D3D_ROOT_SIGNATURE_VERSION_1_0, nullptr, nullptr);
    std::printf("no place: 0x%08X\n", static_cast<unsigned>(result));

    D3D12_VERSIONED_ROOT_SIGNATURE_DESC versioned = {};
    Serialized blob, error;
    const HRESULT unknown = D3D12SerializeVersionedRootSignature(&versioned, &blob, &error);
    std::printf("version 0: 0x%08X %s", static_cast<unsigned>(unknown),
                static_cast<const char *>(error->GetBufferPointer()));

    void *out = &desc;
    const unsigned char bytes[] = {'D', 'X', 'B', 'C', 0, 0, 0, 0};
    const HRESULT damaged = D3D12CreateRootSignatureDeserializer(bytes, sizeof bytes,
                                                                 __uuidof(ID3D12RootSignatureDeserializer), &out);
    std::printf("damaged: 0x%08X %s\n", static_cast<unsigned>(damaged), out ? "kept" : "NULL");
    Serialized whole = version_1_0();
    out = &desc;
    const HRESULT other = D3D12CreateVersionedRootSignatureDeserializer(
        whole->GetBufferPointer(), whole->GetBufferSize(), __uuidof(ID3D12RootSignatureDeserializer), &out);
    std::printf("another interface: 0x%08X %s\n", static_cast<unsigned>(other), out ? "kept" : "NULL");
    const HRESULT checked = D3D12CreateRootSignatureDeserializer(
        whole->GetBufferPointer(), whole->GetBufferSize(), __uuidof(ID3D12RootSignatureDeserializer), nullptr);
    std::printf("only checked: 0x%08X\n", static_cast<unsigned>(checked));
}

int main()
{
    const Serialized old = version_1_0(), young = version_1_1();
    print("1.0", old.Get());
    print("1.1", young.Get());
    read(version_1_0());
    read(version_1_1());
    refusals();
    ComPtr<IUnknown> same;
    CHECK(old.As(&same));
    same.Reset();
    std::printf("%lu reference left\n", static_cast<unsigned long>(old.Get()->AddRef() - 1));
    old.Get()->Release();
}
