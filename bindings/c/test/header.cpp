// The header is valid C++ and its functions link without mangled names.
#include <toolspan.h>

int main() { return ts_abi_version() == 1 && ts_schema_hash() != 0 ? 0 : 1; }
