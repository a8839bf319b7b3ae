package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// audit records the changes of one request in its transaction.
type audit struct {
	who string
	now int64 // unix ms
}

func (a *API) audit(r *http.Request) audit { return audit{httpx.By(r), a.Now().UnixMilli()} }

func (u audit) put(tx *store.Tx, what, format string, args ...any) error {
	return tx.PutAudit(u.who, what, fmt.Sprintf(format, args...), u.now)
}

// route records that a row was added, changed or deleted: before or after is nil. A row that was replaced by itself is
// no change.
func (u audit) route(tx *store.Tx, before, after *msg.Route) error {
	switch {
	case before == nil:
		return u.put(tx, "add route", "%d: %s", after.ID, describeRoute(after))
	case after == nil:
		return u.put(tx, "delete route", "%d: %s", before.ID, describeRoute(before))
	case describeRoute(before) == describeRoute(after) && sameRoute(before, after):
		return nil
	}
	return u.put(tx, "change route", "%d: %s; before: %s", before.ID, describeRoute(after), describeRoute(before))
}

func sameRoute(a, b *msg.Route) bool {
	return a.Seq == b.Seq && a.Match == b.Match && a.Target == b.Target && bytes.Equal(a.Impulse, b.Impulse)
}

func describeRoute(r *msg.Route) string {
	text := fmt.Sprintf("order %d, %.200s to %.200s", r.Seq, cmp.Or(r.Match, "everything"), r.Target)
	if len(r.Impulse) > 0 {
		text += fmt.Sprintf(", impulse_config %.200s", r.Impulse)
	}
	return text
}

// groupChanged records which settings of a group were changed. Their values are left out: an agent's settings may be
// secrets.
func (u audit) groupChanged(tx *store.Tx, before, after *msg.Group) error {
	var changed []string
	if before.Name != after.Name {
		changed = append(changed, "name")
	}
	was, is := settings(before.Config), settings(after.Config)
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !sameJSON(was[name], is[name]) {
			changed = append(changed, fmt.Sprintf("config.%.80s", name)+chosenAgent(name, was[name], is[name]))
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return u.put(tx, "change group", "%s: %s", after.Folder, strings.Join(changed, ", "))
}

// chosenAgent says which agent and model a changed setting chooses, "" for other changes.
func chosenAgent(setting string, before, after json.RawMessage) string {
	type choice struct{ Name, Model string }
	var was, is choice
	if setting != "agent" || readChoice(before, &was) != nil || readChoice(after, &is) != nil || was == is {
		return ""
	}
	return fmt.Sprintf(" (name %.80s, model %.128s)", cmp.Or(is.Name, "default"), cmp.Or(is.Model, "default"))
}

func readChoice(agent json.RawMessage, to any) error {
	return json.Unmarshal([]byte(cmp.Or(string(agent), "{}")), to)
}

// connected records a change that onbod made for an operator.
func (u audit) connected(tx *store.Tx, req *routeapi.Approval, done *routeapi.Approved) error {
	u.who = cmp.Or(req.By, u.who)
	if done.Created {
		if err := u.put(tx, "add group", "%s", done.Folder); err != nil {
			return err
		}
	}
	for i := range done.Routes {
		if err := u.route(tx, nil, &done.Routes[i]); err != nil {
			return err
		}
	}
	return nil
}

// settings returns the fields of a config; one that is no object, as SQL may have left it, has none.
func settings(config json.RawMessage) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(config, &fields)
	return fields
}

// engagement records an operator's request. Agents' requests are in their turns.
func (u audit) engagement(tx *store.Tx, request *routeapi.EngagementRequest, ttl time.Duration, before string) error {
	place := *request.JID
	if *request.Topic != "" {
		place += " in " + *request.Topic
	}
	switch {
	case request.Caller != "":
		return nil
	case ttl > 0:
		return u.put(tx, "open engagement", "%s with %s for %s", place, request.Folder, ttl)
	}
	return u.put(tx, "end engagement", "%s with %s", place, cmp.Or(before, "no group"))
}
