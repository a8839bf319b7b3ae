package adapter

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// refusedAs is a try that is refused, with another form of the part.
func refusedAs(other, remark string) outcome {
	return fails(&Failure{Class: msg.Permanent, Other: other, Remark: remark, Err: errors.New("no " + secret)})
}

func TestDeliver_OtherForm_IsSentInTheSameAttempt(t *testing.T) {
	for name, tt := range map[string]struct {
		script map[string][]outcome
		want   string
		part   store.Delivery // the first one at the end
		sends  []string
	}{
		"sent": {map[string][]outcome{"a": {refusedAs("A", "louder, near "+secret)}},
			"sent: sent sent", store.Delivery{PlatformID: idOf("A"), Error: "louder, near [redacted]"}, []string{"a", "A", "b"}},
		"without a remark": {map[string][]outcome{"a": {refusedAs("A", "")}},
			"sent: sent sent", store.Delivery{PlatformID: idOf("A")}, []string{"a", "A", "b"}},
		"refused again": {map[string][]outcome{"a": {refusedAs("A", "louder")}, "A": {refusedAs("AA", "and longer")}},
			"sent: sent sent", store.Delivery{PlatformID: idOf("AA"), Error: "louder; and longer"}, []string{"a", "A", "AA", "b"}},
		"with a remark of its own": {map[string][]outcome{"a": {refusedAs("A", "louder")}, "A": {fails(&Remark{Text: "in red"})}},
			"sent: sent sent", store.Delivery{Error: "louder; in red"}, []string{"a", "A", "b"}},
		"fails for good": {map[string][]outcome{"a": {refusedAs("A", "louder")}, "A": {fails(failure(msg.Permanent, 0))}},
			"failed: failed cancelled", store.Delivery{ErrorClass: msg.Permanent, Error: "permanent: HTTP 502"}, []string{"a", "A"}},
		"has to wait": {map[string][]outcome{"a": {refusedAs("A", "louder"), refusedAs("A", "louder")}, "A": {fails(failure(msg.Rate, time.Minute))}},
			"sent: sent sent", store.Delivery{PlatformID: idOf("A"), Error: "louder"}, []string{"a", "A", "a", "A", "b"}},
		"may have arrived": {map[string][]outcome{"a": {refusedAs("A", "louder")}, "A": {fails(errCause)}},
			"ambiguous: ambiguous sent", store.Delivery{ErrorClass: msg.Ambiguous, Error: "HTTP 502"}, []string{"a", "A", "b"}},
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			for text, tries := range tt.script {
				r.platform.script(text, tries...)
			}
			id := r.out("", "a|b")
			r.start(redacting)
			pass(time.Hour)
			r.expect(id, tt.want)
			r.expectSent(tt.sends...)
			got := r.deliveries(id)[0]
			tt.part.MessageID, tt.part.State = id, got.State
			if diff := cmp.Diff(tt.part, got); diff != "" {
				t.Errorf("part (-want +got):\n%s", diff)
			}
		})
	}
}
