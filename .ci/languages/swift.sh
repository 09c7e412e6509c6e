# Swift: no binding yet.
test_swift() { for language in swift; do not_run "$language" "no binding yet"; done; }

bench_swift() { for language in swift; do not_run "$language" "no binding yet"; done; }
