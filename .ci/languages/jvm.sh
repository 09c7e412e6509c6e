# Jvm: no binding yet.
test_jvm() { for language in kotlin java; do not_run "$language" "no binding yet"; done; }

bench_jvm() { for language in kotlin java; do not_run "$language" "no binding yet"; done; }
