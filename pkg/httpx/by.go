package httpx

import (
	"context"
	"net/http"
)

// byHeader names on whose behalf a program with the bearer secret asks for a change.
const byHeader = "Arizuko-By"

type byKey struct{}

// WithBy makes requests of a Client with this context carry who asks, such as web:operator.
func WithBy(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, byKey{}, who)
}

// By returns who asks for a change, for the audit: the name that WithBy set in the client, or "api" for a program that
// did not say. Only the bearer secret makes it true.
func By(r *http.Request) string {
	if who := r.Header.Get(byHeader); who != "" {
		return who
	}
	return "api"
}
