// Random calls of the C ABI, as fuzz_capi.py starts them: any slot of any object, with plausible arguments and junk.
//
//     fuzz_capi SEED PROGRAMS CALLS
//
// A program follows from its seed.  Junk is what a C program may pass by mistake and still read from: pointers in
// descs are NULL, valid, or the address of other readable memory, never wild.

#include "fuzz_capi_table.h" // made from the table of interfaces and the declarations of operators

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using Word = uint64_t;

extern "C" {
uint32_t D3D12CreateDevice(Word, uint32_t, const void *, Word *);
uint32_t D3D12GetDebugInterface(const void *, Word *);
uint32_t D3D12GetInterface(const void *, const void *, Word *);
uint32_t D3D12EnableExperimentalFeatures(uint32_t, const void *, const void *, const void *);
uint32_t D3D12SerializeVersionedRootSignature(const void *, Word *, Word *);
uint32_t DXCoreCreateAdapterFactory(const void *, Word *);
uint32_t DMLCreateDevice(Word, uint32_t, const void *, Word *);
uint32_t DMLCreateDevice1(Word, uint32_t, uint32_t, const void *, Word *);
}

// --- what has happened, for a finding ---

static const int LAST = 24;
static char last_calls[LAST][160];
static unsigned call_count;

static void end(const char *why)
{
    std::fprintf(stderr, "fuzz_capi: %s; the last calls:\n", why);
    for (unsigned i = call_count < LAST ? 0 : call_count - LAST; i < call_count; i++)
        std::fprintf(stderr, "  %s\n", last_calls[i % LAST]);
    std::fflush(stderr);
    _exit(99);
}

static void on_signal(int number) { end(number == SIGALRM ? "a call does not return" : "a crash"); }

// --- randomness ---

static std::mt19937_64 generator;

static Word below(Word limit) { return generator() % limit; }
static bool chance(int percent) { return below(100) < static_cast<Word>(percent); }

static uint32_t odd32()
{
    static const uint32_t values[] = {0, 1, 2, 3, 4, 5, 7, 8, 16, 64, 255, 256, 4096, 65535, 65536, 0x7FFFFFFF, 0x80000000,
                                      0xFFFFFFFE, 0xFFFFFFFF};
    return chance(10) ? static_cast<uint32_t>(generator()) : values[below(sizeof values / sizeof *values)];
}

static Word odd64()
{
    static const Word values[] = {1ull << 33, 1ull << 40, 1ull << 63, ~0ull, ~0ull - 255, 1ull << 20, 12345};
    return chance(50) ? odd32() : values[below(sizeof values / sizeof *values)];
}

static uint32_t number(uint32_t plausible) { return chance(4) ? odd32() : plausible; }
static Word wide(Word plausible) { return chance(4) ? odd64() : plausible; }

// --- memory: zeros, of which the front is filled anew for every call ---

static const Word ARENA = 256u << 20, FRONT = 32u << 20;
static uint8_t *arena;
static Word used;
static Word *loop;  // words that all point to the first of them
static Word *zeros; // as many as any array may have

// With zeros behind it: a count may be larger than its array, and what is read there must not be a pointer.
static Word *take(Word bytes)
{
    const Word size = (bytes + 63) / 64 * 64 + 64;
    if (used + size > FRONT)
        used = 4096;
    Word *found = reinterpret_cast<Word *>(arena + used);
    used += size;
    std::memset(found, 0, size);
    return found;
}

static Word address_of(const void *pointer) { return reinterpret_cast<Word>(pointer); }

static Word pointer(Word plausible)
{
    if (!chance(3))
        return plausible;
    return chance(50) ? 0 : chance(50) ? address_of(loop) : address_of(zeros);
}

static void put32(Word *at, int offset, uint32_t value)
{
    std::memcpy(reinterpret_cast<uint8_t *>(at) + offset, &value, 4);
}

static void put(Word *at, int offset, Word value) { std::memcpy(reinterpret_cast<uint8_t *>(at) + offset, &value, 8); }

// --- objects ---

struct Live {
    Word address;
    int interface;
};
static std::vector<Live> live;
static std::vector<Word> stale;
static std::vector<Word> heap_starts[2]; // descriptor handles: CPU, GPU
static std::vector<Word> addresses;      // GPU virtual
static bool keeps_stale;                 // calls on released objects are reported, and do not crash
static int events[2];

static const Word *slots_of(Word object) { return *reinterpret_cast<const Word *const *>(object); }

static uint32_t foreign_slot() { return 0x80004001u; }
static const Word *foreign_slots[128];
static const void *foreign_object = foreign_slots;

static Word release(Word object) { return reinterpret_cast<uint32_t (*)(Word)>(slots_of(object)[2])(object); }

static bool derives(int interface, const char *name)
{
    for (const char *const *each = interfaces[interface].chain; *each != nullptr; each++)
        if (std::strcmp(*each, name) == 0)
            return true;
    return false;
}

static Word any_object()
{
    const int kind = static_cast<int>(below(10));
    if (kind == 0)
        return 0;
    if (kind == 1 && !stale.empty())
        return stale[below(stale.size())];
    if (kind == 2)
        return address_of(&foreign_object);
    return live.empty() ? 0 : live[below(live.size())].address;
}

static Word object(const char *name)
{
    std::vector<Word> found;
    for (const Live &each : live)
        if (derives(each.interface, name))
            found.push_back(each.address);
    return found.empty() || chance(4) ? any_object() : found[below(found.size())];
}

static Word handle(int gpu)
{
    const std::vector<Word> &starts = heap_starts[gpu];
    return starts.empty() || chance(5) ? odd64() : starts[below(starts.size())] + 32 * below(8);
}

static void drop(size_t index)
{
    const Live gone = live[index];
    live[index] = live.back();
    live.pop_back();
    if (release(gone.address) == 0)
        stale.push_back(gone.address);
}

// --- descs ---

static int asked; // the interface of the last IID

static int find(const char *name)
{
    for (int i = 0; i < INTERFACES; i++)
        if (derives(i, name))
            return i;
    return 0;
}

// The IID of the newest version of an interface, or another.
static const Word *guid(const char *name)
{
    if (chance(3))
        return chance(50) ? nullptr : loop;
    asked = chance(10) ? static_cast<int>(below(static_cast<Word>(INTERFACES))) : find(name);
    return interfaces[static_cast<size_t>(asked)].iid;
}

static Word tensor(bool is_standard)
{
    Word *desc = take(48), *typed = take(16);
    const uint32_t rank = is_standard ? 4 : number(static_cast<uint32_t>(1 + below(8)));
    Word *sizes = take(64), *strides = take(64), elements = 1;
    for (int i = 0; i < 8; i++) {
        const uint32_t size = is_standard ? (i == 3 ? 16 : 1) : number(static_cast<uint32_t>(1 + below(4)));
        put32(sizes, 4 * i, size);
        put32(strides, 4 * i, number(static_cast<uint32_t>(below(20))));
        elements *= i < static_cast<int>(rank) ? size : 1;
    }
    put32(desc, 0, is_standard || chance(50) ? 1 : number(static_cast<uint32_t>(below(14))));
    put32(desc, 4, number(0));
    put32(desc, 8, rank);
    put(desc, 16, is_standard ? address_of(sizes) : pointer(address_of(sizes)));
    put(desc, 24, is_standard || chance(60) ? 0 : pointer(address_of(strides)));
    put(desc, 32, wide(elements * 4));
    put32(desc, 40, number(0));
    put32(typed, 0, number(1));
    put(typed, 8, is_standard ? address_of(desc) : pointer(address_of(desc)));
    return address_of(typed);
}

static Word operator_desc(int depth, Word parent, int forced = -1)
{
    const Operator &made = operators[forced >= 0 ? static_cast<Word>(forced) : below(OPERATORS)];
    const bool is_standard = chance(70);
    Word *desc = take(static_cast<Word>(made.size) + 8), *typed = take(16);
    put32(typed, 0, made.type);
    put(typed, 8, pointer(address_of(desc)));
    if (chance(3))
        put32(typed, 0, 1000 + odd32() % 1000);
    for (const Member &each : made.members) {
        uint32_t count = static_cast<uint32_t>(1 + below(4));
        if (each.count_at >= 0) {
            uint32_t before;
            std::memcpy(&before, reinterpret_cast<uint8_t *>(desc) + each.count_at, 4);
            count = before != 0 ? before : number(count);
            put32(desc, each.count_at, count);
        }
        const uint32_t filled = count < 8 ? count : 8;
        switch (each.kind) {
        case 'T':
            put(desc, each.at, is_standard && !chance(20) ? tensor(true) : pointer(tensor(is_standard)));
            break;
        case 't': {
            Word *row = take(16 * 8);
            for (uint32_t i = 0; i < filled; i++)
                std::memcpy(row + 2 * i, reinterpret_cast<void *>(tensor(is_standard)), 16);
            put(desc, each.at, pointer(address_of(row)));
            break;
        }
        case 'O':
        case 'o': {
            if (chance(60))
                break;
            Word nested = chance(15) ? address_of(typed) : chance(15) ? parent : 0;
            if (nested == 0 && depth < 3)
                nested = operator_desc(depth + 1, address_of(typed));
            put(desc, each.at, nested);
            break;
        }
        case 'A': {
            Word *row = take(64);
            for (int i = 0; i < 16; i++)
                put32(row, 4 * i, number(static_cast<uint32_t>(below(4))));
            put(desc, each.at, pointer(address_of(row)));
            break;
        }
        case 'B':
            put(desc, each.at, chance(50) ? 0 : address_of(take(16)));
            break;
        case '8':
            put(desc, each.at, wide(below(3)));
            break;
        default:
            put32(desc, each.at, number(static_cast<uint32_t>(below(4))));
        }
    }
    return address_of(typed);
}

// A chain of operators, each the fused activation of the one before.
static Word deep_desc()
{
    Word inner = 0;
    for (int i = 0; i < 1000; i++) {
        const Operator &made = operators[GEMM];
        Word *desc = take(static_cast<Word>(made.size) + 8), *typed = take(16);
        for (const Member &each : made.members)
            if (each.kind == 'O')
                put(desc, each.at, inner);
        put32(typed, 0, made.type);
        put(typed, 8, address_of(desc));
        inner = address_of(typed);
    }
    return inner;
}

static Word graph()
{
    Word *desc = take(72);
    const uint32_t nodes = static_cast<uint32_t>(below(4));
    Word *row = take(16 * 8);
    for (uint32_t i = 0; i < nodes; i++) {
        Word *node = take(32);
        const bool is_constant = chance(20);
        put(node, 0, is_constant ? address_of(take(256)) : object("IDMLOperator"));
        put(node, 8, is_constant ? (chance(10) ? odd64() | 1ull << 40 : 64) : 0);
        put32(row + 2 * i, 0, number(is_constant ? 2 : 1));
        if (is_constant && row[2 * i] != 2) { // may be read as the other kind, whose name is where the size is
            put(node, 0, 0);
            put(node, 8, 0);
        }
        row[2 * i + 1] = pointer(address_of(node));
    }
    put32(desc, 0, number(1));
    put32(desc, 4, number(1));
    put32(desc, 8, number(nodes));
    put(desc, 16, pointer(address_of(row)));
    for (int edge = 1; edge <= 3; edge++) {
        const uint32_t count = static_cast<uint32_t>(below(3));
        Word *edges = take(16 * 8);
        for (uint32_t i = 0; i < count; i++) {
            Word *each = take(32); // three or four indices, and a name that is NULL
            for (int j = 0; j < 3 + (edge == 3); j++)
                put32(each, 4 * j, edge == 3 || j < 3 ? number(static_cast<uint32_t>(below(2))) : 0);
            put32(edges + 2 * i, 0, number(static_cast<uint32_t>(edge)));
            edges[2 * i + 1] = pointer(address_of(each));
        }
        put32(desc, 8 + 16 * edge, number(count));
        put(desc, 16 + 16 * edge, pointer(address_of(edges)));
    }
    return address_of(desc);
}

static Word bindings()
{
    Word *row = take(16 * 16);
    for (int i = 0; i < 8; i++) {
        Word *buffers = take(24 * 8);
        for (int j = 0; j < 4; j++) {
            buffers[3 * j] = object("ID3D12Resource");
            buffers[3 * j + 1] = wide(256 * below(3));
            buffers[3 * j + 2] = wide(64 << below(4));
        }
        const Word kind = below(10);
        put32(row + 2 * i, 0, kind < 7 ? 1 : kind < 8 ? 0 : kind < 9 ? 2 : odd32());
        Word *array = take(16);
        put32(array, 0, number(3));
        put(array, 8, address_of(buffers));
        const uint32_t type = static_cast<uint32_t>(row[2 * i]);
        row[2 * i + 1] = pointer(address_of(type == 2 ? array : buffers));
    }
    return address_of(row);
}

static Word barriers()
{
    Word *row = take(32 * 8);
    for (int i = 0; i < 8; i++) {
        Word *each = row + 4 * i;
        const uint32_t kind = static_cast<uint32_t>(below(3));
        put32(each, 0, number(kind));
        put32(each, 4, number(0));
        each[1] = kind == 2 && chance(50) ? 0 : object("ID3D12Resource");
        each[2] = 0;
        each[3] = 0;
        static const uint32_t states[] = {0, 8, 0x400, 0x800, 0xAC3};
        put32(each, 16, kind == 0 ? number(0xFFFFFFFF) : 0);
        put32(each, 20, kind == 0 ? number(states[below(5)]) : 0);
        put32(each, 24, kind == 0 ? number(states[below(5)]) : 0);
        if (static_cast<uint32_t>(each[0]) == 1)
            each[2] = object("ID3D12Resource");
    }
    return address_of(row);
}

// Up to 64 bytes, with which no shader begins; or more than there may be.
static Word bytes(Word *at, int offset)
{
    put(at, offset, pointer(address_of(take(4096))));
    put(at, offset + 8, chance(90) ? below(64) : ~static_cast<Word>(below(1 << 20)));
    return address_of(at);
}

static Word stream()
{
    Word *at = take(4096), *subobjects = take(4096);
    Word size = 0;
    for (Word i = below(6); i > 0; i--) {
        // root signature, shader, mask, cached blob, flags; of graphics: vertex shader, blend state
        static const uint32_t kinds[] = {0, 6, 18, 19, 20, 1, 8};
        const uint32_t kind = number(kinds[below(7)]);
        const bool has_bytes = kind == 6 || kind == 19 || (kind == 1 && chance(50));
        Word *each = subobjects + size / 8;
        put32(each, 0, kind);
        put32(each, 4, number(0));
        if (kind == 0)
            each[1] = object("ID3D12RootSignature");
        else if (has_bytes)
            bytes(each, 8);
        size += kind == 6 || kind == 19 || kind == 1 ? 24 : kind == 0 ? 16 : kind == 8 ? 336 : 8;
    }
    at[0] = chance(90) ? size : chance(50) ? below(4096) & ~static_cast<Word>(7) : ~below(1 << 20);
    at[1] = at[0] > size ? address_of(zeros) : pointer(address_of(subobjects));
    return address_of(at);
}

static Word pipeline(Word *at)
{
    at[0] = object("ID3D12RootSignature");
    bytes(at, 8);
    put32(at, 24, number(0));
    if (chance(20))
        bytes(at, 32);
    put32(at, 48, number(0));
    return address_of(at);
}

static Word commands(Word *at)
{
    Word *arguments = take(4096);
    for (int i = 0; i < 64; i++)
        put32(arguments, 4 * i, number(static_cast<uint32_t>(below(9))));
    put32(at, 0, number(12));
    put32(at, 4, chance(90) ? static_cast<uint32_t>(below(8)) : 0xFFFFFFFF);
    put(at, 8, pointer(address_of(arguments)));
    put32(at, 16, number(0));
    return address_of(at);
}

// Without tables, whose ranges would have to be somewhere.
static Word root_signature(Word *at)
{
    Word *parameters = take(4096);
    for (int i = 0; i < 64; i++) {
        put32(parameters, 32 * i, static_cast<uint32_t>(1 + below(5)));
        for (int j = 0; j < 4; j++)
            put32(parameters, 32 * i + 8 + 4 * j, number(static_cast<uint32_t>(below(4))));
    }
    put32(at, 0, number(static_cast<uint32_t>(1 + below(2))));
    put32(at, 8, chance(90) ? static_cast<uint32_t>(below(8)) : 0xFFFFFFFF);
    put(at, 16, pointer(address_of(parameters)));
    put32(at, 24, number(0));
    put(at, 32, address_of(zeros));
    put32(at, 40, number(0));
    return address_of(at);
}

static Word structure(const char *type)
{
    const std::string name = type;
    Word *at = take(4096);
    if (name == "D3D12_HEAP_PROPERTIES") {
        put32(at, 0, number(static_cast<uint32_t>(1 + below(3))));
    } else if (name == "D3D12_RESOURCE_DESC" || name == "D3D12_RESOURCE_DESC1") {
        put32(at, 0, number(1));
        put(at, 8, wide(0));
        put(at, 16, wide(256 << below(10)));
        put32(at, 24, number(1));
        put32(at, 28, 0x10001);
        put32(at, 32, number(0));
        put32(at, 36, number(1));
        put32(at, 44, number(1));
        put32(at, 48, number(chance(60) ? 4 : 0));
    } else if (name == "D3D12_HEAP_DESC") {
        put(at, 0, wide(65536 << below(6)));
        put32(at, 8, number(static_cast<uint32_t>(1 + below(3))));
        put32(at, 40, number(0xC0));
    } else if (name == "D3D12_COMMAND_QUEUE_DESC") {
        put32(at, 0, number(chance(70) ? 0 : 2));
        put32(at, 8, number(0));
    } else if (name == "D3D12_DESCRIPTOR_HEAP_DESC") {
        put32(at, 0, number(0));
        put32(at, 4, number(32));
        put32(at, 8, number(static_cast<uint32_t>(below(2))));
    } else if (name == "D3D12_QUERY_HEAP_DESC") {
        put32(at, 0, number(1));
        put32(at, 4, number(8));
    } else if (name == "D3D12_RANGE") {
        put(at, 0, wide(0));
        put(at, 8, wide(64));
    } else if (name == "D3D12_UNORDERED_ACCESS_VIEW_DESC" || name == "D3D12_SHADER_RESOURCE_VIEW_DESC") {
        put32(at, 4, number(1));
        put32(at, 0, number(0));
        put32(at, 16, number(0));
        put32(at, 24, number(16));
        put32(at, 28, number(4));
    } else if (name == "D3D12_CONSTANT_BUFFER_VIEW_DESC") {
        put(at, 0, addresses.empty() ? 0 : wide(addresses[below(addresses.size())]));
        put32(at, 8, number(256));
    } else if (name == "D3D12_RESOURCE_BARRIER") {
        return barriers();
    } else if (name == "D3D12_VERSIONED_ROOT_SIGNATURE_DESC") {
        return root_signature(at);
    } else if (name == "D3D12_COMPUTE_PIPELINE_STATE_DESC") {
        return pipeline(at);
    } else if (name == "D3D12_PIPELINE_STATE_STREAM_DESC") {
        return stream();
    } else if (name == "D3D12_COMMAND_SIGNATURE_DESC") {
        return commands(at);
    } else if (name == "DML_OPERATOR_DESC") {
        return chance(2) ? deep_desc() : chance(40) ? operator_desc(0, 0, IDENTITY) : operator_desc(0, 0);
    } else if (name == "DML_GRAPH_DESC") {
        return graph();
    } else if (name == "DML_BINDING_DESC") {
        return bindings();
    } else if (name == "DML_BINDING_TABLE_DESC") {
        at[0] = object("IDMLDispatchable");
        at[1] = handle(0);
        at[2] = handle(1);
        put32(at, 24, number(8));
    } else if (name == "D3D12_WRITEBUFFERIMMEDIATE_PARAMETER") {
        for (int i = 0; i < 8; i++)
            at[2 * i] = addresses.empty() ? odd64() : wide(addresses[below(addresses.size())]);
    } else if (name == "void") { // for CheckFeatureSupport: a count and the address of feature levels
        Word *levels = take(64);
        for (int i = 0; i < 16; i++)
            put32(levels, 4 * i, chance(50) ? 0xB000 + 0x100 * static_cast<uint32_t>(below(3)) : odd32());
        put32(at, 0, number(3));
        put(at, 8, pointer(address_of(levels)));
    } else {
        for (int i = 0; i < 64; i++)
            put32(at, 4 * i, chance(80) ? static_cast<uint32_t>(below(3)) : odd32());
    }
    return address_of(at);
}

static Word text(int width)
{
    Word *at = take(1 << 16);
    const Word length = chance(3) ? (1 << 16) / static_cast<Word>(width) : below(20);
    for (Word i = 0; i < length; i++) {
        static const uint32_t odd[] = {0xD800, 0xFFFFFFFF, 0x110000, 0xFEFF, 1, 0xFF};
        const uint32_t character = chance(10) ? odd[below(6)] : static_cast<uint32_t>('a' + below(26));
        if (width == 4)
            put32(at, static_cast<int>(4 * i), character);
        else
            reinterpret_cast<uint8_t *>(at)[i] = static_cast<uint8_t>(character);
    }
    return address_of(at);
}

static void on_message(uint32_t, uint32_t, uint32_t, const char *message, void *) { (void)std::strlen(message); }

// --- calls ---

static Word argument(const Argument &given, const Slot &slot, Word *out)
{
    switch (given.kind) {
    case 'i':
        return object(given.type);
    case 'u': // its methods are called
        return chance(30) || live.empty() ? 0 : chance(50) ? address_of(&foreign_object) : live[below(live.size())].address;
    case 'I': {
        Word *row = take(16 * 8);
        for (int i = 0; i < 16; i++)
            row[i] = object(given.type);
        return pointer(address_of(row));
    }
    case 'n':
        return chance(85) ? below(4) : odd32();
    case 'N': // a count
        return chance(90) ? 1 + below(4) : odd32();
    case 'z': // of bytes that are read
        return chance(90) ? below(64) : chance(50) ? below(1 << 20) : 0xFFFFFFFF;
    case 'q':
        return chance(80) ? 64 * below(8) : odd64();
    case 'g':
        return address_of(guid(slot.makes));
    case 'G': { // one or several
        const Word *known = interfaces[below(INTERFACES)].iid;
        Word *made = take(64);
        made[0] = chance(90) ? below(4) : known[0];
        made[1] = chance(90) ? 0 : known[1];
        return pointer(address_of(made));
    }
    case 'o':
        return chance(4) ? 0 : address_of(out);
    case 's':
        return pointer(structure(given.type));
    case 'w': {
        Word *made = take(1 << 16);
        put32(made, 0, number(4096));
        return chance(5) ? 0 : address_of(made);
    }
    case 'h':
        return static_cast<Word>(chance(80) ? events[below(2)] : chance(50) ? 987654 : -1);
    case 't':
        return pointer(text(4));
    case 'a':
        return pointer(text(1));
    case 'd':
        return handle(0);
    case 'D':
        return handle(1);
    case 'v':
        return addresses.empty() ? odd64() : wide(addresses[below(addresses.size())] + 4 * below(16));
    case 'c':
        return chance(80) ? reinterpret_cast<Word>(&on_message) : 0;
    }
    return 0;
}

static const Word GUARD = 0xA5A5A5A5A5A5A5A5;

// Returns what is in RAX.
static Word invoke(Word function, const Word *a)
{
    using Call = Word (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
    return reinterpret_cast<Call>(function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
                                            a[12], a[13]);
}

static bool is(const Slot &slot, const char *name) { return std::strcmp(slot.name, name) == 0; }

// Only values that are reached: else NULL as the event would wait for ever.
static bool would_block(const Slot &slot, Word self, const Word *arguments)
{
    if (is(slot, "SetEventOnCompletion")) {
        const Word done = reinterpret_cast<Word (*)(Word)>(slots_of(self)[8])(self);
        return static_cast<int>(arguments[1]) == 0 && arguments[0] > done;
    }
    return is(slot, "SetEventOnMultipleFenceCompletion") && arguments[4] == 0;
}

static void learn(const Live &made)
{
    const Word *slots = slots_of(made.address);
    live.push_back(made);
    for (int gpu = 0; gpu < 2 && derives(made.interface, "ID3D12DescriptorHeap"); gpu++)
        heap_starts[gpu].push_back(reinterpret_cast<Word (*)(Word)>(slots[9 + gpu])(made.address));
    if (derives(made.interface, "ID3D12Resource"))
        addresses.push_back(reinterpret_cast<Word (*)(Word)>(slots[11])(made.address));
}

static void note(const char *interface, const char *name, const Word *arguments, size_t count)
{
    char *line = last_calls[call_count++ % LAST];
    int length = std::snprintf(line, sizeof last_calls[0], "%s::%s", interface, name);
    for (size_t i = 0; i < count && length < 140; i++)
        length += std::snprintf(line + length, sizeof last_calls[0] - static_cast<size_t>(length), " %llx",
                                static_cast<unsigned long long>(arguments[i]));
}

static void call(Word self, int interface, const Slot &slot)
{
    Word words[16] = {}, out[3] = {GUARD, GUARD, GUARD};
    alignas(16) Word result[16];
    size_t first = 0, count = 0;
    std::memset(result, 0xA5, sizeof result);
    if (slot.size > 16) { // a struct in memory: its address comes before "this"
        words[count++] = address_of(result + 2);
        first = 1;
    }
    words[count++] = self;
    for (const Argument &each : slot.arguments)
        if (each.kind != 'f')
            words[count++] = argument(each, slot, out + 1);
    const bool is_known = std::find_if(live.begin(), live.end(), [&](const Live &each) {
                              return each.address == self;
                          }) != live.end();
    if (is_known && would_block(slot, self, words + first + 1))
        return;
    note(interfaces[interface].name, slot.name, words, count);
    alarm(60);
    const Word returned = invoke(slots_of(self)[slot.number], words);
    alarm(0);
    const uint32_t hresult = static_cast<uint32_t>(returned);
    if (out[0] != GUARD || out[2] != GUARD)
        end("something beside an out pointer was written");
    for (int i = 0; i < 16; i++)
        if ((i < 2 || 8 * (i - 2) >= slot.size) && result[i] != GUARD)
            end("something beside a result was written");
    if (!slot.is_hresult || slot.makes[0] == 0 || out[1] == GUARD)
        return;
    if (hresult >= 0x80000000u ? out[1] != 0 : out[1] == 0)
        end("HRESULT and out pointer disagree");
    if (hresult < 0x80000000u)
        learn({out[1], asked});
}

// The newest version of any interface; the same pointer for the same one.
static void query(const Live &self)
{
    const int wanted = static_cast<int>(below(static_cast<Word>(INTERFACES)));
    Word out[3] = {GUARD, GUARD, GUARD}, words[3] = {self.address, address_of(interfaces[wanted].iid), address_of(out + 1)};
    note(interfaces[self.interface].name, "QueryInterface", words, 3);
    alarm(60);
    const uint32_t hresult = static_cast<uint32_t>(
        reinterpret_cast<Word (*)(Word, Word, Word)>(slots_of(self.address)[0])(words[0], words[1], words[2]));
    alarm(0);
    if (out[0] != GUARD || out[2] != GUARD || (hresult == 0 ? out[1] == 0 : out[1] != 0))
        end("HRESULT and out pointer of QueryInterface disagree");
    if (hresult != 0)
        return;
    if (wanted == self.interface && out[1] != self.address)
        end("an object has two addresses for one interface");
    learn({out[1], wanted});
}

static void call_export()
{
    Word out = GUARD;
    uint32_t result = 0;
    const char *makes = nullptr;
    const Word *iid;
    Word given;
    switch (below(8)) {
    case 0:
        makes = "ID3D12Device";
        given = chance(80) ? 0 : object("IDXCoreAdapter");
        iid = guid(makes);
        note("D3D12CreateDevice", "", &given, 1);
        result = D3D12CreateDevice(given, number(0xB000), iid, &out);
        break;
    case 1:
        makes = "IDMLDevice";
        given = object("ID3D12Device");
        iid = guid(makes);
        note("DMLCreateDevice", "", &given, 1);
        result = DMLCreateDevice(given, number(0), iid, &out);
        break;
    case 2:
        makes = "IDMLDevice";
        given = object("ID3D12Device");
        iid = guid(makes);
        note("DMLCreateDevice1", "", &given, 1);
        result = DMLCreateDevice1(given, number(1), number(0x5000), iid, &out);
        break;
    case 3:
        makes = "IDXCoreAdapterFactory";
        note(makes, "", nullptr, 0);
        result = DXCoreCreateAdapterFactory(guid(makes), &out);
        break;
    case 4:
        makes = "ID3D12Debug";
        note(makes, "", nullptr, 0);
        result = D3D12GetDebugInterface(guid(makes), &out);
        break;
    case 5:
        note("D3D12GetInterface", "", nullptr, 0);
        D3D12GetInterface(guid(""), guid(""), &out);
        return;
    case 6:
        note("D3D12EnableExperimentalFeatures", "", nullptr, 0);
        D3D12EnableExperimentalFeatures(number(0), loop, nullptr, nullptr);
        return;
    case 7:
        note("D3D12SerializeVersionedRootSignature", "", nullptr, 0);
        D3D12SerializeVersionedRootSignature(loop, &out, nullptr);
        return;
    }
    if (result >= 0x80000000u ? out != 0 && out != GUARD : out == 0 || out == GUARD)
        end("HRESULT and out pointer of an export disagree");
    if (result < 0x80000000u)
        learn({out, asked});
}

// The usual objects, so that most calls find what they need.
static void prepare()
{
    Word made = 0;
    if (D3D12CreateDevice(0, 0xB000, interfaces[find("ID3D12Device")].iid, &made) == 0)
        learn({made, find("ID3D12Device")});
    if (DMLCreateDevice(made, 0, interfaces[find("IDMLDevice")].iid, &made) == 0)
        learn({made, find("IDMLDevice")});
    for (const char *name : {"ID3D12Device", "IDMLDevice", "ID3D12Device", "IDMLDevice"})
        for (const Slot &slot : interfaces[find(name)].slots)
            for (size_t i = 0; i < live.size(); i++)
                if (slot.makes[0] != 0 && derives(live[i].interface, name)) {
                    call(live[i].address, live[i].interface, slot);
                    break;
                }
}

static void step()
{
    if (live.empty() || chance(3)) {
        call_export();
        return;
    }
    if (chance(4) || live.size() > 200) {
        drop(below(live.size()));
        return;
    }
    const Live self = live[below(live.size())];
    const std::vector<Slot> &slots = interfaces[self.interface].slots;
    Word index = below(slots.size());
    for (int i = 0; i < 3 && slots[index].makes[0] == 0 && chance(50); i++)
        index = below(slots.size()); // rather one that makes an object
    const Slot &slot = slots[index];
    if (is(slot, "RemoveDevice") && !chance(3))
        return;
    if (keeps_stale && !stale.empty() && chance(2))
        release(stale[below(stale.size())]); // once too often
    else if (chance(5))
        query(self);
    else
        call(self.address, self.interface, slot);
}

static void run(Word seed, Word calls)
{
    generator.seed(seed);
    prepare();
    for (Word i = 0; i < calls; i++) {
        used = 4096 + 64 * below(64);
        step();
    }
    alarm(60);
    while (!live.empty())
        drop(below(live.size()));
    alarm(0);
    stale.clear();
    addresses.clear();
    for (std::vector<Word> &each : heap_starts)
        each.clear();
}

int main(int, char **arguments)
{
    const Word seed = std::strtoull(arguments[1], nullptr, 10), programs = std::strtoull(arguments[2], nullptr, 10);
    const char *strictness = std::getenv("DMLEMU_STRICTNESS");
    keeps_stale = strictness != nullptr && std::strcmp(strictness, "runtime") != 0;
    arena = static_cast<uint8_t *>(mmap(nullptr, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                        -1, 0));
    loop = reinterpret_cast<Word *>(arena + FRONT);
    zeros = loop + (1 << 20);
    for (int i = 0; i < (1 << 13); i++)
        loop[i] = address_of(loop);
    for (const Word *&each : foreign_slots)
        each = reinterpret_cast<const Word *>(&foreign_slot);
    for (int &each : events)
        each = eventfd(0, EFD_NONBLOCK);
    for (int number : {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
        std::signal(number, on_signal);
    std::signal(SIGTRAP, [](int) {}); // the program has asked to stop at messages
    for (Word i = 0; i < programs; i++) {
        std::fprintf(stderr, "fuzz_capi: program %llu\n", static_cast<unsigned long long>(seed + i));
        run(seed + i, std::strtoull(arguments[3], nullptr, 10));
    }
    std::puts("done");
}
