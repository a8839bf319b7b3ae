package events

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	fake "arizuko/pkg/testkit/fakes/telegram"
	"arizuko/teled/internal/telegramapi"
)

func TestListen_AnotherReader_IsNamedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, fake.Options{})
		expect := func(when string, others float64, notes ...string) {
			t.Helper()
			if got := value(t, a.metrics, "arizuko_competing_receivers"); got != others || !slices.Equal(a.notes, notes) {
				t.Errorf("%s: %v others, notes %q, want %v, %q", when, got, a.notes, others, notes)
			}
		}
		const named = "another program has read this bot's updates in the last quarter of an hour: stop it, or use another bot for it; what it reads does not come here"
		time.AfterFunc(12*time.Second, func() {
			_ = a.API.Call(context.Background(), "getUpdates", telegramapi.Params{"timeout": 0}, nil) // it has no updates
		})
		if err := a.listen(t, time.Minute); !telegramapi.OtherReader(err) {
			t.Fatalf("the listener ended with %v, want a conflict", err)
		}
		expect("at the conflict", 1, named)
		_ = a.listen(t, time.Minute)
		expect("connected again", 1, named)
		_ = a.listen(t, contestedFor)
		expect("a quarter of an hour later", 0)

		a.SetWebhook("https://elsewhere.example")
		if err := a.listen(t, time.Minute); !telegramapi.Conflict(err) || telegramapi.OtherReader(err) {
			t.Fatalf("the listener ended with %v, want a webhook", err)
		}
		expect("with a webhook", 0)
	})
}
