package daemon_test

import (
	"strings"
	"testing"

	"arizuko/pkg/daemon"
)

func TestProcess_Metrics_CountLinesAndShowTheConnection(t *testing.T) {
	p := start(t, options(migratedFolder(t)))
	defer p.Close()
	p.Log.With("row", 1).WithGroup("g").Warn("disconnected; reconnecting")
	p.Log.Info("ready")
	p.Log.Error("poke failed")
	p.Heartbeat.Report(daemon.BadCredentials, "401")
	_, page := fetch(t, "http://"+p.Addr+"/metrics")
	for _, line := range []string{
		`arizuko_log_lines_total{level="warn"} 1`, `arizuko_log_lines_total{level="error"} 1`,
		`arizuko_connection_state{state="bad_credentials"} 1`, `arizuko_connection_state{state="connected"} 0`,
		`arizuko_commit_errors_total{cause="locked"} 0`, `arizuko_build_info{version="`,
		`arizuko_poke_errors_total{daemon="gated"} 0`,
	} {
		if !strings.Contains(page, line) {
			t.Errorf("no %s in\n%s", line, page)
		}
	}
	for _, name := range []string{"arizuko_disk_free_bytes", "arizuko_disk_size_bytes", "arizuko_time_seconds"} {
		if !strings.Contains(page, "\n"+name+" ") || strings.Contains(page, "\n"+name+" 0\n") {
			t.Errorf("no value of %s", name)
		}
	}
}
