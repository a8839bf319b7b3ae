package services

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"arizuko/pkg/apierr"
)

func TestServiceReply(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		err  error
		want string
	}{
		{"all is well", nil, "all is well"},
		{"", nil, "Done."},
		{"", apierr.New(apierr.NotFound, "no such request"), "no such request"},
		{"", apierr.New(apierr.Unavailable, "secret detail"), onbodDown},
		{"", errors.New("secret detail"), onbodDown},
		{"", foreignAnswer(t), onbodDown},
	} {
		if got := serviceReply(tt.text, tt.err, onbodDown); got != tt.want {
			t.Errorf("%q, %v: %q", tt.text, tt.err, got)
		}
	}
}

// foreignAnswer is the error of a call to a program that is no daemon.
func foreignAnswer(t *testing.T) error {
	t.Helper()
	return serve(t, http.NotFound).Do(t.Context(), http.MethodPost, "/approve", nil, nil)
}

func TestWhy_NoMessage_SaysWhatToWrite(t *testing.T) {
	h := parallel(t)
	usage := fmt.Sprintf(whyUsage, "/why")
	for _, tt := range []struct{ text, replyTo, want string }{
		{"/why", "", usage}, {"/why did it fail", "", usage}, {"/why -1", "", usage}, {"/why", "elsewhere", fmt.Sprintf(whyUnknown, "/why")}, {"/why 99999", "", "There is no message 99999."},
	} {
		if got := h.asks(tt.text, tt.replyTo); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.text, got, tt.want)
		}
	}
}
