// What the first call of a library that is loaded later leaves as it was; called by one thread or many at once.
//
//     surroundings LIBRARY local|global THREADS STACK_KIB [plain|odd|coroutine]

#include <DirectML.h>

#include <atomic>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <pthread.h>
#include <string>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>
#include <xmmintrin.h>

extern char **environ;

using State = std::map<std::string, std::string>;

static std::string hex(const void *bytes, size_t size)
{
    std::string text;
    char two[3];
    for (size_t i = 0; i < size; i++) {
        std::snprintf(two, sizeof two, "%02x", static_cast<const unsigned char *>(bytes)[i]);
        text += two;
    }
    return text;
}

static State files()
{
    State found;
    DIR *folder = opendir("/proc/self/fd");
    while (const dirent *each = readdir(folder)) {
        char target[4096] = "";
        const int fd = std::atoi(each->d_name);
        if (each->d_name[0] == '.' || fd == dirfd(folder))
            continue;
        const std::string path = std::string("/proc/self/fd/") + each->d_name;
        if (readlink(path.c_str(), target, sizeof target - 1) > 0)
            found["file " + std::string(each->d_name)] = target;
    }
    closedir(folder);
    return found;
}

static State look()
{
    State found = files();
    for (int i = 1; i < 65; i++) {
        struct sigaction action = {};
        const bool is_known = sigaction(i, nullptr, &action) == 0;
        action.sa_flags &= ~0x04000000; // libc's own, in every action that was set
        if (is_known)
            found["signal " + std::to_string(i)] = hex(&action.sa_sigaction, 8) + hex(&action.sa_flags, 4);
    }
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    found["signal mask"] = hex(&mask, 8);
    for (int i = 0; i < LC_ALL; i++)
        found["locale " + std::to_string(i)] = setlocale(i, nullptr);
    for (char **each = environ; *each != nullptr; each++) {
        const std::string text = *each;
        found["variable " + text.substr(0, text.find('='))] = text;
    }
    char folder[4096];
    found["folder"] = getcwd(folder, sizeof folder);
    found["floating point"] = std::to_string(_mm_getcsr() & 0xFFC0);
    const mode_t mask_of_files = umask(0);
    umask(mask_of_files);
    found["umask"] = std::to_string(mask_of_files);
    return found;
}

static void compare(const State &before, const State &after)
{
    for (const auto &[name, value] : before) {
        const auto found = after.find(name);
        if (found == after.end() || found->second != value)
            std::fprintf(stdout, "%s was %s, is %s\n", name.c_str(), value.c_str(),
                         found == after.end() ? "gone" : found->second.c_str());
    }
    for (const auto &[name, value] : after) {
        const bool is_file = name.compare(0, 5, "file ") == 0;
        const int fd = is_file ? std::atoi(name.c_str() + 5) : -1;
        if (before.count(name) == 0 && (!is_file || fd <= 2 || (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0))
            std::fprintf(stdout, "%s is new: %s\n", name.c_str(), value.c_str());
    }
}

static decltype(&D3D12CreateDevice) create;
static pthread_barrier_t all_here;
static std::atomic<int> good;

static void call()
{
    ID3D12Device *device = nullptr;
    ID3D12Fence *fence = nullptr;
    const float tiny = 1e-38f;
    volatile float before = tiny / 8.0f;
    if (create(nullptr, D3D_FEATURE_LEVEL_11_0, __uuidof(ID3D12Device), reinterpret_cast<void **>(&device)) != S_OK)
        return;
    if (device->CreateFence(7, D3D12_FENCE_FLAG_NONE, __uuidof(ID3D12Fence), reinterpret_cast<void **>(&fence)) == S_OK) {
        volatile float after = tiny / 8.0f;
        good += fence->GetCompletedValue() == 7 && before == after;
        fence->Release();
    }
    device->Release();
}

static void *on_thread(void *)
{
    pthread_barrier_wait(&all_here);
    call();
    return nullptr;
}

static ucontext_t caller, coroutine;

static void call_in_coroutine()
{
    call();
    swapcontext(&coroutine, &caller);
}

static void run_coroutine()
{
    static char stack[64 << 10];
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = sizeof stack;
    makecontext(&coroutine, call_in_coroutine, 0);
    swapcontext(&caller, &coroutine);
}

static void on_usr1(int) {}

int main(int count, char **arguments)
{
    const std::string kind = count > 5 ? arguments[5] : "plain";
    if (kind == "odd") { // a client with settings of its own
        setlocale(LC_ALL, "C.UTF-8");
        std::signal(SIGUSR1, on_usr1);
        std::signal(SIGCHLD, SIG_IGN);
        std::signal(SIGPIPE, SIG_DFL);
        _mm_setcsr((_mm_getcsr() | 0xE040) & ~0x0200u); // to zero, denormals are zeros, division by zero traps
        umask(027);
    }
    const State before = look();
    const int mode = std::strcmp(arguments[2], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
    void *library = dlopen(arguments[1], RTLD_NOW | mode);
    if (library == nullptr) {
        std::puts(dlerror());
        return 2;
    }
    create = reinterpret_cast<decltype(create)>(dlsym(library, "D3D12CreateDevice"));
    const int threads = std::atoi(arguments[3]);
    pthread_barrier_init(&all_here, nullptr, static_cast<unsigned>(threads) + (threads == 0));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, static_cast<size_t>(std::atoi(arguments[4])) << 10);
    std::vector<pthread_t> started(static_cast<size_t>(threads));
    for (pthread_t &each : started)
        pthread_create(&each, &attributes, on_thread, nullptr);
    for (pthread_t each : started)
        pthread_join(each, nullptr);
    if (kind == "coroutine")
        run_coroutine();
    else
        call();
    compare(before, look());
    std::printf("%d right\n", good.load());
}
