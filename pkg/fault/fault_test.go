package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"arizuko/pkg/fault"
)

func TestKindsAndStatusesAreOneToOne(t *testing.T) {
	want := map[fault.Kind]int{
		fault.BadRequest: 400, fault.Unauthorized: 401, fault.Forbidden: 403, fault.NotFound: 404,
		fault.Conflict: 409, fault.Unavailable: 503, fault.Internal: 500,
	}
	if len(fault.Kinds()) != len(want) {
		t.Fatalf("%d kinds, want %d", len(fault.Kinds()), len(want))
	}
	for kind, status := range want {
		if got := kind.Status(); got != status {
			t.Errorf("%s.Status() = %d, want %d", kind, got, status)
		}
		if got := fault.OfStatus(status); got != kind {
			t.Errorf("OfStatus(%d) = %s, want %s", status, got, kind)
		}
	}
}

func TestOfForeignStatus(t *testing.T) {
	for status, want := range map[int]fault.Kind{
		405: fault.BadRequest, 413: fault.BadRequest, 422: fault.BadRequest,
		429: fault.Unavailable, 502: fault.Unavailable, 504: fault.Unavailable,
		501: fault.Internal, 302: fault.Internal, 0: fault.Internal, -1: fault.Internal,
	} {
		if got := fault.OfStatus(status); got != want {
			t.Errorf("OfStatus(%d) = %s, want %s", status, got, want)
		}
	}
}

func TestKindOf(t *testing.T) {
	missing := fault.New(fault.NotFound, "no group %q", "main")
	for name, tc := range map[string]struct {
		err  error
		want fault.Kind
	}{
		"nil":            {nil, ""},
		"fault":          {missing, fault.NotFound},
		"wrapped fault":  {fmt.Errorf("load: %w", missing), fault.NotFound},
		"joined fault":   {errors.Join(io.EOF, missing), fault.NotFound},
		"outermost wins": {fault.New(fault.Conflict, "taken: %w", missing), fault.Conflict},
		"no fault":       {io.EOF, fault.Internal},
		"unknown kind":   {fault.New("teapot", "short and stout"), fault.Internal},
	} {
		if got := fault.KindOf(tc.err); got != tc.want {
			t.Errorf("%s: KindOf = %q, want %q", name, got, tc.want)
		}
	}
}

func TestNewWraps(t *testing.T) {
	err := fault.New(fault.Unavailable, "store: %w", io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the wrapped error is lost")
	}
	if got, want := err.Error(), "store: unexpected EOF"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}
