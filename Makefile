# Every target works on a fresh clone with Go and a C compiler.
MODULES := migrations pkg gated routd deploy

.PHONY: build test race lint bench clean

build: ## all programs into bin/
	go build -o bin/ ./gated ./routd ./migrations/cmd/migrate ./deploy/agents/demo

test: ## everything, with real processes and database files
	go test work

race: ## the same under the race detector
	go test -race work

lint: ## vet, format, linters, and each module on its own
	deploy/lint.sh $(MODULES)

bench: ## the message path against a floor without logic; takes some minutes
	go run ./deploy/bench $(ARGS)

clean:
	rm -rf bin
