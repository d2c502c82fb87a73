#include "tables.h"

#include <cstdio>
#include <cstring>
#include <new>

#include "buffers.h"

namespace devprof {

namespace {

constexpr uint64_t kFirstSlots = 1024;
constexpr size_t kMostFunctions = kNone >> kIndexShift;

bool may_be_module(const PyCodeObject* code) {
  // the same names as in modules.py
  return code->co_argcount > 0 && (PyUnicode_CompareWithASCIIString(code->co_name, "__call__") == 0 ||
                                   PyUnicode_CompareWithASCIIString(code->co_name, "_wrapped_call_impl") == 0);
}

// Source: meth_repr in CPython's Objects/methodobject.c.
std::string repr(const char* name, PyObject* self) {
  if (self == nullptr || PyModule_Check(self)) return std::string("<built-in function ") + name + ">";
  char address[32];
  std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(self)));
  return std::string("<built-in method ") + name + " of " + Py_TYPE(self)->tp_name + " object at " + address + ">";
}

// What a bound function is told apart by: the class itself for its class methods, else the class of the object.
PyTypeObject* owner_of(PyObject* self) {
  if (self == nullptr) return nullptr;
  return PyType_Check(self) ? reinterpret_cast<PyTypeObject*>(self) : Py_TYPE(self);
}

// The same rule as in modules.py. Reads the dictionary of the class and runs no Python.
bool is_own(PyObject* self) {
  if (self == nullptr || !PyType_HasFeature(Py_TYPE(self), Py_TPFLAGS_HEAPTYPE)) return false;
  PyObject* const module = PyDict_GetItemString(Py_TYPE(self)->tp_dict, "__module__");
  if (module == nullptr || !PyUnicode_Check(module)) return false;
  const char* const name = PyUnicode_AsUTF8(module);
  if (name == nullptr) PyErr_Clear();
  return name != nullptr && (std::strcmp(name, "devprof") == 0 || std::strncmp(name, "devprof.", 8) == 0);
}

}  // namespace

CodeTable::CodeTable() : slots_(kFirstSlots), mask_(kFirstSlots - 1) {}

CodeTable::~CodeTable() {
  for (PyObject* code : codes_) Py_DECREF(code);
}

uint32_t CodeTable::add(PyObject* code) noexcept {
  try {
    if (codes_.size() >= kMostFunctions) return kNone;
    if (codes_.size() * 2 >= slots_.size()) {
      std::vector<Slot> old(slots_.size() * 2);
      old.swap(slots_);
      mask_ = slots_.size() - 1;
      for (const Slot& slot : old) insert(slot);
    }
    const uint32_t flag = may_be_module(reinterpret_cast<PyCodeObject*>(code)) ? kModule : 0;
    const Slot slot{code, static_cast<uint32_t>(codes_.size()) << kIndexShift | flag};
    codes_.push_back(code);
    Py_INCREF(code);
    insert(slot);
    return slot.what;
  } catch (const std::bad_alloc&) {
    return kNone;
  }
}

void CodeTable::insert(const Slot& slot) {
  if (slot.code == nullptr) return;
  uint64_t i = place(slot.code);
  while (slots_[i & mask_].code != nullptr) ++i;
  slots_[i & mask_] = slot;
}

CFunctionTable::CFunctionTable() : slots_(kFirstSlots), mask_(kFirstSlots - 1) {}

CFunctionTable::~CFunctionTable() {
  for (const Slot& slot : slots_) Py_XDECREF(slot.owner);
}

uint32_t CFunctionTable::find(PyObject* function, PyObject* argument) noexcept {
  const PyMethodDef* method;
  PyObject* self;
  if (PyCFunction_Check(function)) {
    method = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
    self = reinterpret_cast<PyCFunctionObject*>(function)->m_self;
  } else if (Py_IS_TYPE(function, &PyMethodDescr_Type) && argument != nullptr) {
    method = reinterpret_cast<PyMethodDescrObject*>(function)->d_method;
    self = argument;
  } else {
    return kNone;
  }
  PyTypeObject* const owner = owner_of(self);
  for (uint64_t i = place(method, owner);; ++i) {
    const Slot& slot = slots_[i & mask_];
    if (slot.method == method && slot.owner == owner && slot.name == method->ml_name) return slot.what;
    if (slot.method == nullptr) return add(method, owner, self);
  }
}

uint32_t CFunctionTable::add(const PyMethodDef* method, PyTypeObject* owner, PyObject* self) noexcept {
  try {
    if (names_.size() >= kMostFunctions) return kNone;
    grow();
    const uint32_t what = static_cast<uint32_t>(names_.size()) << kIndexShift | kCallOfC;
    names_.push_back(repr(method->ml_name, self));
    if (is_own(self)) own_.push_back(static_cast<uint32_t>(names_.size() - 1));
    Py_XINCREF(owner);
    insert({method, method->ml_name, owner, what});
    ++used_;
    return what;
  } catch (const std::bad_alloc&) {
    return kNone;
  }
}

void CFunctionTable::ignore(const PyCFunctionObject* function) {
  grow();
  PyTypeObject* const owner = owner_of(function->m_self);
  Py_XINCREF(owner);
  insert({function->m_ml, function->m_ml->ml_name, owner, kNone});
  ++used_;
}

void CFunctionTable::grow() {
  if (used_ * 2 < slots_.size()) return;
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  mask_ = slots_.size() - 1;
  for (const Slot& slot : old) insert(slot);
}

void CFunctionTable::insert(const Slot& slot) {
  if (slot.method == nullptr) return;
  uint64_t i = place(slot.method, slot.owner);
  while (slots_[i & mask_].method != nullptr) ++i;
  slots_[i & mask_] = slot;
}

}  // namespace devprof
