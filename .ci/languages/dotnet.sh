# Dotnet: no binding yet.
test_dotnet() { for language in dotnet; do not_run "$language" "no binding yet"; done; }

bench_dotnet() { for language in dotnet; do not_run "$language" "no binding yet"; done; }
