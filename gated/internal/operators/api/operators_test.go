package api

import (
	"regexp"
	"strings"
	"testing"

	"arizuko/gated/internal/rows"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/internal/codes"
	"arizuko/pkg/store"
)

func TestOperators_CodeIsStoredAsAHash_AndWhatCameOfItRemoved(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	body := r.expect("POST", "/v1/operators/code", 201)
	code, _ := body["code"].(string)
	if body["expires_at"] != float64(5000+codes.Life.Milliseconds()) || !regexp.MustCompile(`^[A-Z2-9-]{14}$`).MatchString(code) {
		t.Fatalf("answer %v", body)
	}
	stored, err := rows.FindOperatorCode(t.Context(), r.st.Reader)
	if err != nil || stored.Hash != codes.Hash(code) || strings.Contains(stored.Hash, code) || stored.By != "api" {
		t.Errorf("stored %+v, %v", stored, err)
	}
	r.write(func(tx *store.Tx) error { return rows.AddOperator(tx, "telegram:7", codes.Hash(code), 6000) })
	for _, tt := range []struct {
		body   string
		status int
		words  string
	}{
		{`{"sender":"telegram:7"}`, 200, "telegram:7"},
		{`{"sender":"telegram:7"}`, 404, "did not become an operator by a code"},
		{`{"sender":"telegram:42"}`, 404, "did not become an operator by a code"},
		{`{}`, 404, "did not become"},
		{`{"sender":7}`, 400, "unexpected number"},
	} {
		if status, answer := r.post("/v1/operators/remove", tt.body); status != tt.status || !strings.Contains(answer, tt.words) {
			t.Errorf("%s: %d %s", tt.body, status, answer)
		}
	}
	want := []string{"5000 api new operator code ", "6000 telegram:7 add operator with the code of api", "5000 api remove operator telegram:7"}
	if diff := cmp.Diff(want, r.audit()); diff != "" {
		t.Error(diff)
	}
}
