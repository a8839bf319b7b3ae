package adapter

import "testing"

func TestMemo_Full_ForgetsAll(t *testing.T) {
	var m Memo[int, string]
	if before := m.Put(0, "a"); before != "" || m.Put(0, "b") != "a" || m.Get(0) != "b" {
		t.Errorf("%q, then %q", before, m.Get(0))
	}
	for key := range maxMemo {
		m.Put(key+1, "c")
	}
	if m.Get(0) != "" || m.Get(maxMemo) != "c" {
		t.Errorf("kept: %q, last: %q", m.Get(0), m.Get(maxMemo))
	}
	if m.Delete(maxMemo); m.Get(maxMemo) != "" {
		t.Error("not deleted")
	}
}
