package store_test

import (
	"testing"

	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestPutAudit_NeedsWhoAndWhat(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutAudit("telegram:42", "approve", "ABCD-1234", 1) })
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.PutAudit("", "approve", "", 1) }); err == nil {
		t.Error("an audit row without who is stored")
	}
}
