package main

import (
	"testing"

	"arizuko/pkg/config"
	"arizuko/pkg/config/configtest"
)

func TestReadmeTable(t *testing.T) {
	configtest.CheckTable(t, "README.md", Config{})
}

func TestConfigProblems(t *testing.T) {
	_, err := config.Load[Config]([]string{
		"TELED_ADDR=8091", "TELEGRAM_API_URL=api.telegram.org", "BOTS=some", "RESEND=never", "MEDIA_MAX=0", "POLL_INTERVAL=2ns",
	})
	problems, ok := err.(config.Problems)
	if !ok || len(problems) != 7 { // with the token that is not set
		t.Errorf("got %v", err)
	}
}
