"""The profiler backend my-npu."""
