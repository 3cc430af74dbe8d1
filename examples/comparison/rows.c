/* The sum of each row of an image, as ../cpp/rows.cpp, in OpenCL.  argv[1] is the mistake: none, pitch (rows are
 * taken to lie as close as they are long), bounds (as further apart than they lie), order (no event orders the
 * kernel that writes the image before the one that reads it) or race (all rows write one sum). */

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <stdio.h>
#include <string.h>

enum { Height = 3, Width = 5, Pitch = 8, Bytes = ((Height - 1) * Pitch + Width) * sizeof(float) };

static const char Source[] =
    "kernel void twice(global const float *packed, global float *image) {\n"
    "    const size_t y = get_global_id(0);\n"
    "    for (int x = 0; x < 5; x++)\n"
    "        image[y * 8 + x] = 2 * packed[y * 5 + x];\n"
    "}\n"
    "kernel void sums(global const float *image, global float *sums, int pitch, int one) {\n"
    "    const size_t y = get_global_id(0);\n"
    "    float sum = 0;\n"
    "    for (int x = 0; x < 5; x++)\n"
    "        sum += image[y * pitch + x];\n"
    "    sums[one ? 0 : y] = sum;\n"
    "}\n";

int main(int count, char **given)
{
    const char *mistake = count > 1 ? given[1] : "none";
    cl_platform_id platform;
    cl_device_id device;
    if (clGetPlatformIDs(1, &platform, NULL) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
        return 2;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, NULL);
    const char *text = Source;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, NULL);
    if (clBuildProgram(program, 1, &device, "", NULL, NULL))
        return 2;
    cl_kernel twice = clCreateKernel(program, "twice", NULL), add = clCreateKernel(program, "sums", NULL);
    float values[Height * Width], results[Height];
    for (int i = 0; i < Height * Width; i++)
        values[i] = (float)(i / Width + 1);
    cl_mem packed = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof values, values, NULL);
    cl_mem image = clCreateBuffer(context, 0, Bytes, NULL, NULL);
    cl_mem sums = clCreateBuffer(context, 0, sizeof results, NULL, NULL);
    const cl_int pitch = !strcmp(mistake, "pitch") ? Width : !strcmp(mistake, "bounds") ? Pitch + 2 : Pitch;
    const cl_int one = !strcmp(mistake, "race");
    clSetKernelArg(twice, 0, sizeof packed, &packed);
    clSetKernelArg(twice, 1, sizeof image, &image);
    clSetKernelArg(add, 0, sizeof image, &image);
    clSetKernelArg(add, 1, sizeof sums, &sums);
    clSetKernelArg(add, 2, sizeof pitch, &pitch);
    clSetKernelArg(add, 3, sizeof one, &one);
    const size_t rows = Height;
    cl_event written, summed;
    clEnqueueNDRangeKernel(queue, twice, 1, NULL, &rows, NULL, 0, NULL, &written);
    const int ordered = strcmp(mistake, "order") != 0;
    clEnqueueNDRangeKernel(queue, add, 1, NULL, &rows, NULL, (cl_uint)ordered, ordered ? &written : NULL, &summed);
    clEnqueueReadBuffer(queue, sums, CL_TRUE, 0, sizeof results, results, 1, &summed, NULL);
    for (int y = 0; y < Height; y++)
        printf("row %d: %g\n", y, results[y]);
    return 0;
}
