# JVM: one package for Kotlin and Java. Maven compiles it, its tests and the shims of both languages.
jvm() { mvn -q -B -f bindings/jvm/pom.xml "$@"; }

jvm_missing() { have java && have mvn && return 1 || echo "no java with mvn"; }

test_jvm() {
  local missing
  missing=$(jvm_missing) && { for language in kotlin java; do not_run "$language" "$missing"; done; return; }
  step "jvm tests" env TOOLSPAN_LIBRARY_PATH="$BIN" TOOLSPAN_FIXTURES="$BIN/toolspan-fixtures" mvn -q -B -f bindings/jvm/pom.xml test
  PORTS+=,kotlin,java
}

bench_jvm() {
  local missing
  missing=$(jvm_missing) && { for language in kotlin java; do not_run "$language" "$missing"; done; return; }
  cargo build --release --quiet -p toolspan-uniffi
  jvm test-compile
  row kotlin 0.25 "java -Dtoolspan.library.path=$BIN -cp $(jvm_classpath) BenchKt"
  row java 0.25 "java -Dtoolspan.library.path=$BIN -cp $(jvm_classpath) Bench"
  SIZES+=("$BIN/libtoolspan_uniffi.so")
}

jvm_classpath() { echo "bindings/jvm/target/classes:bindings/jvm/target/test-classes:bindings/jvm/target/lib/*"; }
