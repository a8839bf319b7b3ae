package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/pkg/testkit/browser"
)

// press presses a button of the editor of routes, which loads its page again.
func (p *page) press(do string) {
	p.t.Helper()
	p.Follow(func() { p.Click(`.buttons button[value="` + do + `"]`) })
}

// fill writes into fields, by their ids.
func (p *page) fill(fields map[string]string) {
	p.t.Helper()
	for id, text := range fields {
		browser.Eval[bool](p.Tab, fmt.Sprintf(`(document.getElementById(%s).value = %s, true)`, quoted(id), quoted(text)))
	}
}

// routesEdited: an operator edits a copy of the routes, checks it, tests a message, compares, and saves, with the real routd.
// Another operator, who loaded the editor before, cannot save over that without being asked.
func routesEdited(t *testing.T, b *browser.Browser) {
	i := start(t)
	i.Run("routd", "groups", "add", "eng")
	i.Run("routd", "routes", "add", "--match", "platform=telegram", "--target", "main")
	i.Exec(`INSERT INTO messages (chat_jid, platform_id, direction, sender, sender_name, verb, content, timestamp, received_at, source, disposition, reason, decided_at, decision_seq)
		VALUES ('telegram:-7', '1', 'in', 'telegram:42', 'Ada', 'mention', 'is the build red?', 5, 5, 'hand', 'sticky', 'pin', 6, 1)`)
	p, other := i.logIn(b), i.open(b)
	for _, each := range []*page{p, other} {
		each.Visit(i.url + "/routes/edit")
		each.press("add")
	}

	p.fill(map[string]string{"match-n1": "platfrom=telegram", "target-n1": "eng", "place-n1": "1"})
	p.press("check")
	p.says("#result", "1 of the routes cannot be saved")
	p.says("#problem-n1", `unknown key "platfrom"`)
	equal(t, "the field that is wrong", browser.Eval[string](p.Tab, `document.querySelector("[aria-invalid=true]").id`), "match-n1")
	p.press("save")
	equal(t, "routes after a refused save", i.Query(`SELECT match, target FROM routes`), []string{"platform=telegram main"})
	p.fill(map[string]string{"match-n1": "chat_jid=telegram:-7 verb=mention"})
	p.press("check")
	p.says("#result", "All routes are valid.")

	p.fill(map[string]string{"test-chat": "telegram:-7", "test-sender": "telegram:42", "test-verb": "mention"})
	p.press("test")
	p.says("#test ~ .answer", "With your copy: answered by eng")
	p.says("#test ~ .answer", "Now: answered by main")
	p.press("replay")
	p.says("#replay ~ .answer", "1 of 1 messages would go another way.")
	p.says("#replay ~ .answer", "is the build red?")
	equal(t, "routes before the save", i.Query(`SELECT match, target FROM routes`), []string{"platform=telegram main"})
	p.press("save")
	p.says("main", "chat_jid=telegram:-7 verb=mention")
	saved := []string{"chat_jid=telegram:-7 verb=mention eng", "platform=telegram main"}
	equal(t, "routes after the save", i.Query(`SELECT match, target FROM routes ORDER BY seq, id`), saved)

	other.fill(map[string]string{"match-n1": "platform=slack", "target-n1": "main"})
	other.press("save")
	other.says(".conflict", "The routes have been changed in the meantime")
	other.says(".conflict", "Nothing was saved.")
	other.says(".conflict", "See who changed what")
	equal(t, "what was typed", browser.Eval[string](other.Tab, `document.getElementById("match-n1").value`), "platform=slack")
	equal(t, "routes after the second save", i.Query(`SELECT match, target FROM routes ORDER BY seq, id`), saved)

	p.Visit(i.url + "/audit")
	p.says(".changes", "web:operator")
	equal(t, "the new route's audit", i.Query(`SELECT who, what FROM audit WHERE detail LIKE '%telegram:-7%' AND what LIKE '%route%'`), []string{"web:operator add route"})
	if decided := i.Run("routd", "routes", "test", "--chat", "telegram:-7", "--verb", "mention"); !strings.Contains(decided, "eng") {
		t.Errorf("routd decides: %s", decided)
	}
}
