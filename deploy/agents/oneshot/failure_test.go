package main

import (
	"os/exec"
	"testing"

	"arizuko/pkg/agentproto"
)

func TestExplain_ProgramOfScriptMissing_IsPermanent(t *testing.T) {
	c := &cli{program: "sh"}
	err := exec.Command("sh", "-c", "nosuchprogram").Run()
	if f := c.explain(err, "sh: 1: nosuchprogram: not found"); f.Kind != agentproto.KindPermanent {
		t.Errorf("%+v", f)
	}
}
