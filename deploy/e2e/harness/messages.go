package harness

import (
	"encoding/json"
	"net/http"

	"arizuko/pkg/msg"
)

// NoRate is the config of a group whose senders may start any number of turns, as those of
// test suites do.
const NoRate = `{"rate":0}`

// AddGroups registers groups without a limit of turns.
func (f *Fixture) AddGroups(folders ...string) {
	f.T.Helper()
	for _, folder := range folders {
		f.post("/v1/groups", map[string]any{"folder": folder, "config": json.RawMessage(NoRate)}, nil)
	}
}

// SetGroup replaces the config of a group.
func (f *Fixture) SetGroup(folder, config string) {
	f.T.Helper()
	f.OK(f.Routd.Do(f.T.Context(), http.MethodPut, "/v1/groups/"+folder,
		map[string]any{"config": json.RawMessage(config)}, nil))
}

// AddRoute adds a route after the existing ones and returns its id.
func (f *Fixture) AddRoute(match, target string) int64 {
	f.T.Helper()
	var route msg.Route
	f.post("/v1/routes", map[string]any{"match": match, "target": target}, &route)
	return route.ID
}

// AddRouteWithImpulse adds a route with an impulse_config.
func (f *Fixture) AddRouteWithImpulse(match, target string, impulse map[string]any) {
	f.T.Helper()
	f.post("/v1/routes", map[string]any{"match": match, "target": target, "impulse_config": impulse}, nil)
}

func (f *Fixture) post(path string, in, out any) {
	f.T.Helper()
	f.OK(f.Routd.Do(f.T.Context(), http.MethodPost, path, in, out))
}

// Say writes a chat message as an adapter does and returns its row id.
func (f *Fixture) Say(chat, text string) int64 {
	f.T.Helper()
	return f.Put(msg.Message{ChatJID: chat, Content: text})[0]
}

// Put writes inbound rows in one transaction, as a foreign adapter does, and returns their ids.
// Empty columns that must not be empty get a value. Gated is poked.
func (f *Fixture) Put(rows ...msg.Message) []int64 {
	f.T.Helper()
	ids, err := f.Adapter.Receive(f.T.Context(), rows...)
	f.OK(err)
	return ids
}

// PutWithoutPoke is Put without poking gated.
func (f *Fixture) PutWithoutPoke(rows ...msg.Message) []int64 {
	f.T.Helper()
	ids, err := f.Adapter.Insert(f.T.Context(), rows...)
	f.OK(err)
	return ids
}
