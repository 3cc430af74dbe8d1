/* Runs compute shaders in SPIR-V on the Vulkan device of the machine's processor (lavapipe of Mesa), for tests.
 *
 * It reads jobs from its standard input until that ends, and writes a reply for each:
 *   job:   struct job, struct binding[bindings], the SPIR-V, the bytes of each buffer
 *   reply: struct reply, then the bytes of each buffer; or, where reply.failed is not 0, that many bytes of text */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vulkan/vulkan.h>

struct job {
    uint32_t code_bytes, bindings, groups[3], repeat;
    char entry[64];
};

struct binding {
    uint32_t set, binding, type, format; /* a VkDescriptorType; a VkFormat of texels */
    uint64_t bytes;
};

struct reply {
    uint64_t failed, nanoseconds; /* of the fastest dispatch of those asked for */
};

enum { MOST_BINDINGS = 64, MOST_SETS = 8, MOST_TEXT = 500 };

struct buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkBufferView view;
    void *bytes;
};

static struct {
    VkDevice device;
    VkQueue queue;
    VkCommandPool pool;
    VkPhysicalDeviceMemoryProperties memory;
} gpu;

static char failure[MOST_TEXT];

static int fail(const char *text, ...) {
    va_list arguments;
    va_start(arguments, text);
    (void)vsnprintf(failure, sizeof failure, text, arguments);
    va_end(arguments);
    return -1;
}

#define TRY(call)                                                      \
    do {                                                               \
        const VkResult result_ = (call);                               \
        if (result_ != VK_SUCCESS) return fail("%s: VkResult %d", #call, result_); \
    } while (0)

/* --- the device --- */

/* The first device that is a processor. */
static int find_device(VkInstance instance, VkPhysicalDevice *found) {
    VkPhysicalDevice devices[16];
    uint32_t count = 16;
    const VkResult result = vkEnumeratePhysicalDevices(instance, &count, devices);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) return fail("no Vulkan devices: VkResult %d", result);
    for (uint32_t i = 0; i < count; ++i) {
        VkPhysicalDeviceProperties properties;
        vkGetPhysicalDeviceProperties(devices[i], &properties);
        if (properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) {
            *found = devices[i];
            return 0;
        }
    }
    return fail("none of %u Vulkan devices is a processor", count);
}

/* Creates the device with every feature that it has, robustBufferAccess among them. */
static int create_device(VkPhysicalDevice physical) {
    VkPhysicalDeviceVulkan12Features features12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan11Features features11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &features12};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &features11};
    vkGetPhysicalDeviceFeatures2(physical, &features);
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &features,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue};
    TRY(vkCreateDevice(physical, &info, NULL, &gpu.device));
    vkGetDeviceQueue(gpu.device, 0, 0, &gpu.queue);
    vkGetPhysicalDeviceMemoryProperties(physical, &gpu.memory);
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    TRY(vkCreateCommandPool(gpu.device, &pool, NULL, &gpu.pool));
    return 0;
}

static int open_device(void) {
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    VkInstance instance;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    TRY(vkCreateInstance(&info, NULL, &instance));
    return find_device(instance, &physical) ? -1 : create_device(physical);
}

/* --- buffers --- */

static int is_texels(uint32_t type) {
    return type == VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER || type == VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
}

static int memory_type(uint32_t allowed, uint32_t *type) {
    const uint32_t wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    for (uint32_t i = 0; i < gpu.memory.memoryTypeCount; ++i)
        if (allowed >> i & 1 && (gpu.memory.memoryTypes[i].propertyFlags & wanted) == wanted) {
            *type = i;
            return 0;
        }
    return fail("no memory that the host sees");
}

static int create_buffer(const struct binding *binding, struct buffer *made) {
    const VkBufferUsageFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
                                     VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT;
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = binding->bytes, .usage = usage};
    TRY(vkCreateBuffer(gpu.device, &info, NULL, &made->buffer));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(gpu.device, made->buffer, &needs);
    VkMemoryAllocateInfo allocation = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size};
    if (memory_type(needs.memoryTypeBits, &allocation.memoryTypeIndex)) return -1;
    TRY(vkAllocateMemory(gpu.device, &allocation, NULL, &made->memory));
    TRY(vkBindBufferMemory(gpu.device, made->buffer, made->memory, 0));
    TRY(vkMapMemory(gpu.device, made->memory, 0, VK_WHOLE_SIZE, 0, &made->bytes));
    if (!is_texels(binding->type)) return 0;
    const VkBufferViewCreateInfo view = {.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO,
                                         .buffer = made->buffer,
                                         .format = (VkFormat)binding->format,
                                         .range = VK_WHOLE_SIZE};
    TRY(vkCreateBufferView(gpu.device, &view, NULL, &made->view));
    return 0;
}

static void destroy_buffer(struct buffer *made) {
    vkDestroyBufferView(gpu.device, made->view, NULL);
    vkDestroyBuffer(gpu.device, made->buffer, NULL);
    vkFreeMemory(gpu.device, made->memory, NULL);
    memset(made, 0, sizeof *made);
}

/* --- a job --- */

static struct {
    struct job job;
    struct binding bindings[MOST_BINDINGS];
    struct buffer buffers[MOST_BINDINGS];
    uint32_t *code;
    uint32_t sets;
    VkDescriptorSetLayout layouts[MOST_SETS];
    VkPipelineLayout layout;
    VkShaderModule module;
    VkPipeline pipeline;
    VkDescriptorPool descriptors;
    VkDescriptorSet bound[MOST_SETS];
    VkCommandBuffer commands;
} work;

static int create_layouts(void) {
    for (uint32_t set = 0; set < work.sets; ++set) {
        VkDescriptorSetLayoutBinding slots[MOST_BINDINGS];
        uint32_t count = 0;
        for (uint32_t i = 0; i < work.job.bindings; ++i)
            if (work.bindings[i].set == set)
                slots[count++] = (VkDescriptorSetLayoutBinding){.binding = work.bindings[i].binding,
                                                                .descriptorType = (VkDescriptorType)work.bindings[i].type,
                                                                .descriptorCount = 1,
                                                                .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
        const VkDescriptorSetLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                                      .bindingCount = count,
                                                      .pBindings = slots};
        TRY(vkCreateDescriptorSetLayout(gpu.device, &info, NULL, &work.layouts[set]));
    }
    const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = work.sets,
                                             .pSetLayouts = work.layouts};
    TRY(vkCreatePipelineLayout(gpu.device, &info, NULL, &work.layout));
    return 0;
}

static int create_pipeline(void) {
    const VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = work.job.code_bytes,
                                           .pCode = work.code};
    TRY(vkCreateShaderModule(gpu.device, &code, NULL, &work.module));
    const VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                              .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                        .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                        .module = work.module,
                                                        .pName = work.job.entry},
                                              .layout = work.layout};
    TRY(vkCreateComputePipelines(gpu.device, VK_NULL_HANDLE, 1, &info, NULL, &work.pipeline));
    return 0;
}

static void write_descriptor(uint32_t i) {
    const struct binding *binding = &work.bindings[i];
    const VkDescriptorBufferInfo range = {.buffer = work.buffers[i].buffer, .range = VK_WHOLE_SIZE};
    const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                        .dstSet = work.bound[binding->set],
                                        .dstBinding = binding->binding,
                                        .descriptorCount = 1,
                                        .descriptorType = (VkDescriptorType)binding->type,
                                        .pBufferInfo = &range,
                                        .pTexelBufferView = &work.buffers[i].view};
    vkUpdateDescriptorSets(gpu.device, 1, &write, 0, NULL);
}

static int bind_buffers(void) {
    if (!work.sets) return 0;
    const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, MOST_BINDINGS},
                                          {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, MOST_BINDINGS},
                                          {VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, MOST_BINDINGS},
                                          {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, MOST_BINDINGS}};
    const VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = MOST_SETS,
                                             .poolSizeCount = 4,
                                             .pPoolSizes = sizes};
    TRY(vkCreateDescriptorPool(gpu.device, &pool, NULL, &work.descriptors));
    const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = work.descriptors,
                                              .descriptorSetCount = work.sets,
                                              .pSetLayouts = work.layouts};
    TRY(vkAllocateDescriptorSets(gpu.device, &info, work.bound));
    for (uint32_t i = 0; i < work.job.bindings; ++i) write_descriptor(i);
    return 0;
}

static int record(void) {
    const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = gpu.pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
    TRY(vkAllocateCommandBuffers(gpu.device, &info, &work.commands));
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    TRY(vkBeginCommandBuffer(work.commands, &begin));
    vkCmdBindPipeline(work.commands, VK_PIPELINE_BIND_POINT_COMPUTE, work.pipeline);
    if (work.sets)
        vkCmdBindDescriptorSets(work.commands, VK_PIPELINE_BIND_POINT_COMPUTE, work.layout, 0, work.sets, work.bound, 0,
                                NULL);
    vkCmdDispatch(work.commands, work.job.groups[0], work.job.groups[1], work.job.groups[2]);
    TRY(vkEndCommandBuffer(work.commands));
    return 0;
}

static uint64_t now(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

static int dispatch(uint64_t *fastest) {
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &work.commands};
    *fastest = UINT64_MAX;
    for (uint32_t i = 0; i < work.job.repeat; ++i) {
        const uint64_t begin = now();
        TRY(vkQueueSubmit(gpu.queue, 1, &submit, VK_NULL_HANDLE));
        TRY(vkQueueWaitIdle(gpu.queue));
        const uint64_t taken = now() - begin;
        if (taken < *fastest) *fastest = taken;
    }
    return 0;
}

static int run_job(uint64_t *fastest) {
    if (create_layouts() || create_pipeline() || bind_buffers() || record()) return -1;
    return dispatch(fastest);
}

static void clear(void) {
    if (work.commands) vkFreeCommandBuffers(gpu.device, gpu.pool, 1, &work.commands);
    vkDestroyDescriptorPool(gpu.device, work.descriptors, NULL);
    vkDestroyPipeline(gpu.device, work.pipeline, NULL);
    vkDestroyShaderModule(gpu.device, work.module, NULL);
    vkDestroyPipelineLayout(gpu.device, work.layout, NULL);
    for (uint32_t set = 0; set < MOST_SETS; ++set) vkDestroyDescriptorSetLayout(gpu.device, work.layouts[set], NULL);
    for (uint32_t i = 0; i < work.job.bindings; ++i) destroy_buffer(&work.buffers[i]);
    free(work.code);
    memset(&work, 0, sizeof work);
}

/* --- standard input and output --- */

static int take(void *to, size_t bytes) { return fread(to, 1, bytes, stdin) == bytes ? 0 : fail("the input ends"); }

/* Reads a whole job; -1 also where it cannot be held, which ends the program: what follows would be read wrongly. */
static int read_job(void) {
    work.job.entry[sizeof work.job.entry - 1] = 0;
    if (work.job.bindings > MOST_BINDINGS) return fail("%u bindings", work.job.bindings);
    if (take(work.bindings, work.job.bindings * sizeof *work.bindings)) return -1;
    work.code = malloc(work.job.code_bytes);
    if (!work.code || take(work.code, work.job.code_bytes)) return -1;
    for (uint32_t i = 0; i < work.job.bindings; ++i) {
        const struct binding *binding = &work.bindings[i];
        if (binding->set >= MOST_SETS) return fail("set %u", binding->set);
        if (binding->set >= work.sets) work.sets = binding->set + 1;
        if (create_buffer(binding, &work.buffers[i])) return -1;
        if (take(work.buffers[i].bytes, binding->bytes)) return -1;
    }
    return 0;
}

static int answer(int failed, uint64_t nanoseconds) {
    const struct reply reply = {.failed = failed ? strlen(failure) : 0, .nanoseconds = nanoseconds};
    (void)fwrite(&reply, sizeof reply, 1, stdout);
    if (failed) (void)fwrite(failure, 1, reply.failed, stdout);
    for (uint32_t i = 0; !failed && i < work.job.bindings; ++i)
        (void)fwrite(work.buffers[i].bytes, 1, work.bindings[i].bytes, stdout);
    return fflush(stdout);
}

int main(void) {
    if (open_device()) {
        (void)answer(1, 0);
        return 1;
    }
    while (fread(&work.job, sizeof work.job, 1, stdin) == 1) {
        uint64_t nanoseconds = 0;
        if (read_job()) {
            (void)answer(1, 0);
            return 1;
        }
        const int failed = run_job(&nanoseconds);
        if (answer(failed, nanoseconds)) return 1;
        clear();
    }
    return 0;
}
