# Included by a project's Makefile: `make test` links the project's *.c and *_test.c with the SDK's harness and runs them.
# The project says where the SDK is (SDK), what its own sources are (SOURCES), and what they include (HEADERS).
TEST_OBJECTS := $(patsubst %.c,build/%.o,$(notdir $(SOURCES)) $(wildcard *_test.c)) \
    $(patsubst %,build/sdk/%.o,keyrail json memory keyrail_test yyjson)
TEST_FLAGS := -std=gnu11 -g -O0 -Wall -Wextra -I. -I$(SDK)/include -I$(SDK)/src -I$(SDK)/vendor/yyjson
COMPILE_TEST = @mkdir -p $(@D) && $(CC) $(TEST_FLAGS) $(CFLAGS) -c $< -o $@

.PHONY: test
test: build/tests
	./build/tests

build/tests: $(TEST_OBJECTS)
	$(CC) $(CFLAGS) $(TEST_OBJECTS) -o $@ -lm

build/sdk/%.o: $(SDK)/src/%.c $(HEADERS)
	$(COMPILE_TEST)
build/sdk/%.o: $(SDK)/test/%.c $(HEADERS)
	$(COMPILE_TEST)
build/sdk/%.o: $(SDK)/vendor/yyjson/%.c
	$(COMPILE_TEST)
build/%.o: %.c $(HEADERS)
	$(COMPILE_TEST)
