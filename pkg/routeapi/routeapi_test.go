package routeapi_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

func TestAnswer_JSON_HasEveryField(t *testing.T) {
	for name, tc := range map[string]struct {
		answer routeapi.Answer
		want   string
	}{
		"failed": {
			routeapi.Answer{ID: 7, Action: routeapi.Trigger, Error: "no"},
			`{"id":7,"error":"no"}`,
		},
		"decided, every field there": {
			routeapi.Answer{ID: 7, Action: routeapi.None, Reason: msg.ReasonNoRoute, Trace: []string{},
				Impulse: msg.DefaultImpulse(100, 5*time.Minute)},
			`{"id":7,"action":"none","folder":"","home":"","target":"","route_id":0,"engaged":false,` +
				`"thread_id":"","opens_thread":false,"surface":"","ceiling":0,"impulse":{"threshold":100,` +
				`"max_hold_ms":300000,"quiet_ms":0,"weights":{"reaction":0,"typing":0}},"reason":"no_route","trace":[]}`,
		},
	} {
		got, err := json.Marshal(routeapi.Response{Items: []routeapi.Answer{tc.answer}, Version: 3})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(`{"items":[`+tc.want+`],"version":3}`, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnswer_JSON_RoundTrip(t *testing.T) {
	want := routeapi.Answer{ID: 1, Action: routeapi.Observe, Folder: "acme", Home: "acme", Target: "acme#observe", RouteID: 4,
		Engaged: true, ThreadID: "9", OpensThread: true, Surface: "slack-dm", Ceiling: 4000,
		Impulse: msg.DefaultImpulse(1, time.Second), Reason: msg.ReasonRouteObserve, Trace: []string{"x"}}
	body, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got routeapi.Answer
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
