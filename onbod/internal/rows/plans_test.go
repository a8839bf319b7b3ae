package rows

import (
	"testing"

	"arizuko/pkg/store/storetest"
)

// TestQueryPlans has the expected plan of every statement. A comment says why one may have SCAN or TEMP B-TREE.
func TestQueryPlans(t *testing.T) {
	storetest.CheckPlans(t, map[string][2]string{
		"queryRequest": {queryRequest, "SEARCH r USING PRIMARY KEY (code=?)\n" +
			"SEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN"},
		// As many as may be pending.
		"queryPendingRequests": {queryPendingRequests, "SCAN r USING INDEX onboarding_pending\n" +
			"SEARCH c USING PRIMARY KEY (jid=?) LEFT-JOIN"},
		"queryRequestsOfSender": {queryRequestsOfSender, "SEARCH onboarding_requests USING COVERING INDEX onboarding_sender (sender=? AND created_at>? AND created_at<?)"},
		"queryRequestsSince":    {queryRequestsSince, "SEARCH onboarding_requests USING COVERING INDEX onboarding_created (created_at>? AND created_at<?)"},
		// As many as may be pending.
		"queryRequestsPending":   {queryRequestsPending, "SCAN onboarding_requests USING COVERING INDEX onboarding_pending"},
		"updateWithdrawApproval": {updateWithdrawApproval, "SEARCH onboarding_requests USING PRIMARY KEY (code=?)"},
		"updateReopenRequest":    {updateReopenRequest, "SEARCH onboarding_requests USING PRIMARY KEY (code=?)"},
		"deleteOldRequests": {deleteOldRequests, "SEARCH onboarding_requests USING PRIMARY KEY (code=?)\n" +
			"LIST SUBQUERY 1\n" +
			"SEARCH onboarding_requests USING INDEX onboarding_created (created_at<?)"},
		// Once an hour.
		"queryNthRequest": {queryNthRequest, "SCAN onboarding_requests USING COVERING INDEX onboarding_created"},
		"queryFolderUsed": {queryFolderUsed, "SCAN CONSTANT ROW\n" +
			"SCALAR SUBQUERY 1\n" +
			"SEARCH registered_groups USING PRIMARY KEY (folder=?)\n" +
			"SCALAR SUBQUERY 2\n" +
			"SEARCH sessions USING PRIMARY KEY (group_folder=?)\n" +
			"SCALAR SUBQUERY 3\n" +
			"SEARCH turns USING INDEX turns_folder (folder=?)"},
		"insertRequest":       {insertRequest, ""},
		"updateNoteApproval":  {updateNoteApproval, "SEARCH onboarding_requests USING PRIMARY KEY (code=?)"},
		"updateDecideRequest": {updateDecideRequest, "SEARCH onboarding_requests USING PRIMARY KEY (code=?)"},
	})
}
