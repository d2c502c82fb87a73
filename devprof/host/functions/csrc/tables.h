// Which functions were seen, each once. Guarded by the GIL.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

namespace devprof {

// Code objects by address; each is kept alive, so that its address stays its own.
class CodeTable {
 public:
  CodeTable();
  ~CodeTable();
  CodeTable(const CodeTable&) = delete;
  CodeTable& operator=(const CodeTable&) = delete;

  // `what` of an enter, with kModule where the code may be a module's call; kNone without memory. Never runs Python.
  uint32_t find(PyObject* code) noexcept {
    for (uint64_t i = place(code);; ++i) {
      const Slot& slot = slots_[i & mask_];
      if (slot.code == code) return slot.what;
      if (slot.code == nullptr) return add(code);
    }
  }

  const std::vector<PyObject*>& codes() const { return codes_; }

 private:
  struct Slot {
    PyObject* code;
    uint32_t what;
  };

  uint64_t place(const void* code) const {
    return (reinterpret_cast<uintptr_t>(code) >> 4) * 0x9E3779B97F4A7C15u >> 20;
  }
  uint32_t add(PyObject* code) noexcept;
  void insert(const Slot& slot);

  std::vector<Slot> slots_;
  uint64_t mask_;
  std::vector<PyObject*> codes_;
};

// C functions by definition and the type they are bound to, with the text that repr has for the first of each.
class CFunctionTable {
 public:
  CFunctionTable();
  ~CFunctionTable();
  CFunctionTable(const CFunctionTable&) = delete;
  CFunctionTable& operator=(const CFunctionTable&) = delete;

  // `what` of an enter; kNone for a callable that the profile function would not report, or without memory.
  // Args: argument: what a method descriptor is called on, or null.
  uint32_t find(PyObject* function, PyObject* argument) noexcept;

  // Makes `find` say kNone for a function. Throws std::bad_alloc.
  void ignore(const PyCFunctionObject* function);

  const std::vector<std::string>& names() const { return names_; }
  // Indices of those that are bound to an object of one of devprof's classes, ascending.
  const std::vector<uint32_t>& own() const { return own_; }

 private:
  struct Slot {
    const PyMethodDef* method;
    const char* name;  // a definition that was freed may come back at its address under another name
    PyTypeObject* owner;
    uint32_t what;
  };

  uint64_t place(const void* method, const void* owner) const {
    const auto bits = reinterpret_cast<uintptr_t>(method) ^ reinterpret_cast<uintptr_t>(owner) << 1;
    return (bits >> 4) * 0x9E3779B97F4A7C15u >> 20;
  }
  uint32_t add(const PyMethodDef* method, PyTypeObject* owner, PyObject* self) noexcept;
  void insert(const Slot& slot);
  void grow();

  std::vector<Slot> slots_;
  uint64_t mask_;
  size_t used_ = 0;
  std::vector<std::string> names_;
  std::vector<uint32_t> own_;
};

}  // namespace devprof
