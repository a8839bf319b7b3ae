module arizuko/deploy

go 1.26.0

require (
	arizuko/pkg v0.0.0
	github.com/google/go-cmp v0.7.0
)

replace (
	arizuko/migrations => ../migrations
	arizuko/pkg => ../pkg
)
