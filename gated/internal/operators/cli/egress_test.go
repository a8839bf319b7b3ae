package cli

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/operators/api"
	"arizuko/pkg/daemon"
	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestEgress_Commands_ShowAndChangeTheRulesOfGated(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	router := httpx.NewRouter(slog.New(slog.DiscardHandler), nil)
	api.API{Store: st, Now: func() time.Time { return time.UnixMilli(slot) }}.Mount(router)
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	storetest.Write(t, st, func(tx *store.Tx) error {
		return egressrows.PutReceipt(tx, &egress.Receipt{At: slot - 1000, RunID: 1, TurnID: 7, Folder: "main", Method: "POST", Host: "example.com", Port: 443,
			Path: "/\x1b[2J", State: egress.Refused, Reason: "no approver"})
	})
	const next = 33 // after the presets
	at1 := time.UnixMilli(slot - 1000).Format(time.DateTime)
	for _, tt := range []struct{ line, want string }{
		{"egress log", "ID AT GROUP TURN REQUEST\n1 " + at1 + " main 7 POST example.com/?[2J → refused: no approver\n"},
		{"egress log --host other.test --days 1", "no requests\n"},
		{"egress rules test --host example.com --action pass", "of 1 requests of the last week, 1 would be decided otherwise\n" +
			"AT GROUP NOW THEN REQUEST\n" + at1 + " main ask pass POST example.com/?[2J\n"},
		{"egress rules test --host example.com", "of 1 requests of the last week, 0 would be decided otherwise\n"},
		{"egress rules add --host example.com --method post --path /x/ --action inject --secret gh", fmt.Sprintf("added rule %d: POST example.com/x/ → inject gh\n", next)},
		{"egress rules add --host * --action deny --seq 1000", fmt.Sprintf("added rule %d: * → deny\n", next+1)},
		{"egress rules list", fmt.Sprintf("\n%d 0 (all) POST example.com/x/ inject gh cli %s\n1 11 (all) (any) api.anthropic.com pass preset -\n", next, time.UnixMilli(slot).Format(time.DateTime))},
		{"egress rules list", fmt.Sprintf("\n%d 1000 (all) (any) * deny cli %s\n", next+1, time.UnixMilli(slot).Format(time.DateTime))},
		{fmt.Sprintf("egress rules rm 1 %d", next), fmt.Sprintf("removed rule 1\nremoved rule %d\n", next)},
	} {
		code, out, problem := run(t, at(server.URL), strings.Fields(tt.line)...)
		if out = spaces.ReplaceAllString(out, " "); code != daemon.ExitOK || problem != "" || !strings.Contains(out, tt.want) {
			t.Errorf("%s: exit %d, %s, prints\n%s\nwant\n%s", tt.line, code, problem, out, tt.want)
		}
	}
	code, _, problem := run(t, at(server.URL), "egress", "rules", "rm", "1")
	if code != daemon.ExitFailure || !strings.Contains(problem, "no egress rule 1") {
		t.Errorf("exit %d, %s", code, problem)
	}
}
