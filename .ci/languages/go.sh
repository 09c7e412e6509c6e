# Go: no binding yet.
test_go() { for language in go; do not_run "$language" "no binding yet"; done; }

bench_go() { for language in go; do not_run "$language" "no binding yet"; done; }
