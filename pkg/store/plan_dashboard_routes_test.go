package store

// dashboardRoutePlans has the plans of the statements in queries_dashboard_routes.go: rows of the audit and messages are
// read from the newest on, as far as the limit asks.
func dashboardRoutePlans() map[string][2]string {
	return map[string][2]string{
		"queryAudit":       {queryAudit, "SEARCH audit USING INTEGER PRIMARY KEY (rowid<?)"},
		"queryAuditWho":    {queryAuditWho, "SEARCH audit USING INDEX audit_who (who=? AND rowid<?)"},
		"queryAuditWhat":   {queryAuditWhat, "SEARCH audit USING INDEX audit_what (what=? AND rowid<?)"},
		"queryOldestAudit": {queryOldestAudit, "SCAN audit"},
	}
}
