package agentproto_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
)

func TestModels_WrittenAndRead_AreTheSame(t *testing.T) {
	m := &agentproto.Models{Current: "a", Models: []agentproto.Model{{ID: "a", Name: "A", Description: "small"}, {ID: "b"}}}
	var out bytes.Buffer
	if err := agentproto.WriteEvent(&out, agentproto.Event{Models: m}); err != nil {
		t.Fatal(err)
	}
	got, err := agentproto.ReadEvent(bytes.TrimSpace(out.Bytes()))
	if diff := cmp.Diff(m, got.Models); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestModels_HostileEvent_IsBounded(t *testing.T) {
	read := func(body string) (agentproto.Event, error) {
		return agentproto.ReadEvent([]byte(agentproto.EventMark + " " + body))
	}
	var many []string
	for i := range 150 {
		many = append(many, fmt.Sprintf(`{"id":"m%d","name":"%s"}`, i, strings.Repeat("n", 5000)))
	}
	e, err := read(`{"type":"models","models":[` + strings.Join(many, ",") + `]}`)
	if err != nil || len(e.Models.Models) != agentproto.MaxModels || len(e.Models.Models[0].Name) > agentproto.MaxTitle {
		t.Errorf("%v, %d models", err, len(e.Models.Models))
	}
	e, err = read(`{"type":"models","turnId":"7","models":[{"id":" a\nb "},{"id":"a b"}]}`)
	if want := (&agentproto.Models{Models: []agentproto.Model{{ID: "a b"}}}); err != nil || e.TurnID != "" || cmp.Diff(want, e.Models) != "" {
		t.Errorf("%v: %+v", err, e.Models)
	}
	for _, body := range []string{
		`{"type":"models","models":[{"id":""}]}`, `{"type":"models","models":[{"name":"x"}]}`, `{"type":"models","models":7}`,
		`{"type":"models","models":[{"id":"` + strings.Repeat("x", agentproto.MaxModelID+1) + `"}]}`,
		`{"type":"models","current":"` + strings.Repeat("x", agentproto.MaxModelID+1) + `","models":[]}`,
	} {
		if e, err := read(body); err == nil {
			t.Errorf("%.60s is accepted: %+v", body, e.Models)
		}
	}
}
