package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/codes"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// openCode stores a code that an operator has made.
func (h *harness) openCode() (code string) {
	h.t.Helper()
	code = codes.New()
	now := h.clock.UnixMilli()
	h.write(func(tx *store.Tx) error {
		return rows.PutOperatorCode(tx, &rows.OperatorCode{Hash: codes.Hash(code), By: "web:operator", ExpiresAt: now + codes.Life.Milliseconds()}, now)
	})
	return code
}

// says writes a text, and returns the gateway's reply.
func (h *harness) says(text string, change ...func(*msg.Message)) string {
	h.t.Helper()
	m := h.put(text, change...)
	for h.step(); h.row(m.ID).Disposition == ""; h.step() { // a service answers it
		h.g.listen(h.t.Context(), nil, nil, false)
	}
	return strings.Join(h.replies(m), "\n")
}

func by(sender string) func(*msg.Message) {
	return func(m *msg.Message) { m.Sender, m.ChatJID = sender, sender }
}

const (
	nowOperator = "You are an operator now"
	wrongCode   = "That code does not work"
	refused     = "Only operators can do that."
)

func (h *harness) expect(got, want string) {
	h.t.Helper()
	if !strings.Contains(got, want) {
		h.t.Errorf("the answer is %q, want %q", got, want)
	}
}

func TestOperatorCode_MakesOneOperator_AtOnce(t *testing.T) {
	h := parallel(t)
	h.expect(h.says("/why 1"), refused)
	code := h.openCode()
	m, after := h.put("/operator "+strings.ToLower(code)), h.put("/why 1")
	h.step()
	h.expect(h.replies(m)[0], nowOperator+", as telegram:7")
	for ; h.row(after.ID).Disposition == ""; h.step() {
		h.g.listen(t.Context(), nil, nil, false)
	}
	if got := h.replies(after); len(got) != 1 || got[0] == refused {
		t.Errorf("a command behind it is answered with %q", got)
	}
	if kept := h.row(m.ID).Content; kept != "/operator" {
		t.Errorf("of the message %q is kept", kept)
	}
	if strings.Contains(strings.ToUpper(h.log.String()), code) {
		t.Error("the log has the code")
	}
	h.expect(h.says("/operator "+code), "You are an operator already.")
	h.expect(h.says("/operator "+code, by("telegram:8")), wrongCode)
	h.restart()
	h.expect(h.says("/approve"), "Which request?")
	audit, err := factrows.Audit(t.Context(), h.st.Reader, factrows.AuditQuery{Limit: 10})
	if err != nil || len(audit) != 2 || audit[0].Who != "telegram:7" || audit[0].What != rows.AuditAddOperator || audit[1].Who != "web:operator" {
		t.Errorf("changes %+v, %v", audit, err)
	}
	h.write(func(tx *store.Tx) error { return rows.RemoveOperator(tx, "telegram:7", "web:operator", 1) })
	h.expect(h.says("/why 1"), refused)
	h.expect(h.says("/approve X", by("telegram:9")), "not answering") // of OPERATORS
}

func TestOperatorCode_NotInGroupsLateOrGuessed(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]func(h *harness, code string){
		"written in a group chat": func(h *harness, code string) {
			h.expect(h.says("/operator "+code, in("telegram:-5")), "worthless now")
		},
		"another one was made": func(h *harness, _ string) { h.openCode() },
		"too late":             func(h *harness, _ string) { h.clock = h.clock.Add(codes.Life) },
		"three wrong ones before": func(h *harness, _ string) {
			for range 3 {
				h.expect(h.says("/operator AAAA-AAAA-AAAA"), wrongCode)
			}
		},
		"thirty wrong ones of others": func(h *harness, _ string) {
			for i := range codes.MaxTries {
				h.expect(h.says("/operator AAAA-AAAA-AAAA", by(fmt.Sprintf("telegram:%d", 100+i/2))), wrongCode)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := parallel(t)
			code := h.openCode()
			try(h, code)
			h.expect(h.says("/operator "+code), wrongCode)
			h.expect(h.says("/why 1"), refused)
		})
	}
}

// A stranger alone cannot end the code that another user is about to write.
func TestOperatorCode_OneStranger_DoesNotEndIt(t *testing.T) {
	h := parallel(t)
	code := h.openCode()
	for i := range 2 * codes.MaxTries {
		h.says(fmt.Sprintf("/operator AAAA-AAAA-AA%d", 22+i%70), by("telegram:666"))
		h.clock = h.clock.Add(5 * time.Second)
	}
	h.expect(h.says("/operator "+code), nowOperator)
}

// Two chats whose rows are decided in one pass cannot use one code twice.
func TestOperatorCode_TwoAtOnce_OneOperator(t *testing.T) {
	h := parallel(t)
	code := h.openCode()
	a, b := h.put("/operator "+code), h.put("/operator "+code, by("telegram:8"))
	h.step()
	made, err := h.st.MadeOperators(t.Context())
	answers := strings.Join(append(h.replies(a), h.replies(b)...), "\n")
	if err != nil || len(made) != 1 || strings.Count(answers, nowOperator) != 1 || strings.Count(answers, wrongCode) != 1 {
		t.Errorf("operators %+v, %v; the answers are %q", made, err, answers)
	}
}

// An open question to operators is for those of now: who became one may answer it, who was removed may not.
func TestOperatorCode_OpenQuestions_AreForOperatorsOfNow(t *testing.T) {
	h := parallel(t)
	h.take("run it", in("telegram:-5"))
	var ask *msg.Ask
	h.write(func(tx *store.Tx) (err error) {
		turn := h.agents.turns[0]
		if err := rows.StartRun(tx, &msg.Run{Folder: turn.Folder, Topic: turn.Topic, ChatJID: turn.ChatJID, Runtime: "process", StartedAt: 1}, turn.ID); err != nil {
			return err
		}
		ask, err = rows.PutAsk(tx, turn, &rows.Question{
			AskID: "rm", Question: "May it?", Options: []string{"Yes", "No"}, PayloadHash: "x", ExpiresAt: h.clock.Add(time.Hour).UnixMilli(),
			Who: msg.Who{Senders: []string{"telegram:9"}, Label: msg.WhoOperators},
		}, h.clock.UnixMilli())
		return err
	})
	may := func(want bool) {
		t.Helper()
		now, err := h.st.Ask(t.Context(), ask.ID)
		if err != nil || now.Who.May("telegram:7") != want || !now.Who.May("telegram:9") {
			t.Errorf("answered by %+v, %v", now.Who, err)
		}
	}
	may(false)
	h.expect(h.says("/operator "+h.openCode()), nowOperator)
	may(true)
	h.write(func(tx *store.Tx) error { return rows.RemoveOperator(tx, "telegram:7", "web:operator", 1) })
	may(false)
}

// A code that is written in another way than as an /operator ends, and no agent reads it.
func TestOperatorCode_InAnotherText_EndsAndIsCutOut(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"!operator CODE", "/operator@other_bot CODE", "\uff0foperator CODE", "my code: CODE, and CODE", "WIDE", "a\u200bSPACED.", "LOWER", "/operator it is CODE"} {
		h := newHarness(t)
		code := h.openCode()
		plain := strings.ReplaceAll(code, "-", "")
		wide := strings.Map(func(r rune) rune { return r - '!' + '\uff01' }, plain)
		text := strings.NewReplacer("CODE", code, "WIDE", wide, "SPACED", strings.Join(strings.Split(plain, ""), "\n. "), "LOWER", strings.ToLower(plain)).Replace(form)
		m := h.take(text)
		left, holds := codes.Cut(h.row(m.ID).Content, codes.Hash(code))
		if stored, err := rows.FindOperatorCode(t.Context(), h.st.Reader); holds || stored != nil || err != nil || !strings.Contains(left, "[code]") && left != "/operator" {
			t.Errorf("%q is stored as %q, code %v, %v", text, left, stored, err)
		}
		h.expect(h.replies(m)[0], "worthless now")
		h.expect(h.says("/operator "+code), wrongCode)
	}
}
