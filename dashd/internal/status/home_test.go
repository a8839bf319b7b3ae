package status

import (
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// As routd decides it, which need not run.
func TestChat_Home_AnswersTheSenderWhoAsks(t *testing.T) {
	const dm = "telegram:42"
	for _, tc := range []struct {
		name string
		at   Where
		seed func(*fixture)
		want string
	}{
		{"the address names a group", Where{ChatJID: web}, nil, "main"},
		{"the address names none", Where{ChatJID: "web:gone"}, func(r *fixture) { r.route("", "main") }, "null"},
		{"the pin", Where{ChatJID: web}, func(r *fixture) { r.pin(web, "acme", "", 0) }, "acme"},
		{"a pin to nothing", Where{ChatJID: web}, func(r *fixture) { r.pin(web, "gone", "", 0) }, "main"},
		{"a pin before the routes", Where{ChatJID: tele}, func(r *fixture) { r.route("", "main"); r.pin(tele, "acme", "", 0) }, "acme"},
		{"the first route", Where{ChatJID: tele}, func(r *fixture) { r.route("room=-1", "acme"); r.route("", "main") }, "acme"},
		{"a route to no group", Where{ChatJID: tele}, func(r *fixture) { r.route("room=-1", "gone"); r.route("", "main") }, "main"},
		{"a drop", Where{ChatJID: tele}, func(r *fixture) { r.route("room=-1", "builtin:drop"); r.route("", "main") }, "null"},
		{"no route", Where{ChatJID: tele}, func(r *fixture) { r.answered(tele, "s", minute) }, "null"},
		{"a route for mentions of any chat", Where{ChatJID: tele}, func(r *fixture) { r.route("verb=mention", "main") }, "main"},
		{"one before a route for all", Where{ChatJID: tele}, func(r *fixture) { r.route("verb=mention", "acme"); r.route("", "main") }, "main"},
		{"a drop of mentions before one for them", Where{ChatJID: tele}, func(r *fixture) { r.route("verb=mention", "builtin:drop"); r.route("verb=mention", "main") }, "null"},
		{"replies before mentions", Where{ChatJID: tele}, func(r *fixture) { r.route("verb=reply", "acme"); r.route("verb=mention", "main") }, "acme"},
		{"mentions in a direct message", Where{ChatJID: dm}, func(r *fixture) { r.direct(dm); r.route("verb=mention", "main") }, "null"},
		{"a sender of any chat", Where{ChatJID: tele, Sender: dm}, func(r *fixture) { r.route("sender="+dm, "acme"); r.route("", "main") }, "acme"},
		{"another sender", Where{ChatJID: tele, Sender: "telegram:7"}, func(r *fixture) { r.route("sender="+dm, "acme"); r.route("", "main") }, "main"},
		{"a name", Where{ChatJID: tele, Sender: dm, SenderName: "Ann"}, func(r *fixture) { r.route("sender_name=Ann", "acme") }, "acme"},
		{"the user of a direct message", Where{ChatJID: dm}, func(r *fixture) { r.direct(dm); r.route("sender="+dm, "acme") }, "acme"},
		{"the engaged group", Where{ChatJID: tele}, func(r *fixture) { r.engage(tele, "", now-minute, now+minute) }, "main"},
		{"the engaged group before routes", Where{ChatJID: tele}, func(r *fixture) { r.route("", "acme"); r.engage(tele, "", now-minute, now+minute) }, "main"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newFixture(t)
			r.group("acme")
			if tc.seed != nil {
				tc.seed(r)
			}
			if got := show(r.chat(tc.at).Group); got != tc.want {
				t.Errorf("group %s, want %s", got, tc.want)
			}
		})
	}
}

// direct makes a chat one of a bot with a user.
func (r *fixture) direct(chatJID string) {
	r.t.Helper()
	r.write(func(tx *store.Tx) error { return tx.PutChat(chatJID, msg.ChatDM, "Ann", now) })
}
