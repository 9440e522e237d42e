// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"strings"
	"testing"
)

// TestM29CredentialsInURLs: a credential in a query is refused in any spelling, and not repeated.
func TestM29CredentialsInURLs(t *testing.T) {
	for query, refused := range map[string]bool{
		"token=CANARY": true, "a=b&token=CANARY": true, "a=b;TOKEN=CANARY": true, "%74oken=CANARY": true, "token": true,
		"private_token=CANARY": true, "access-token=CANARY": true, "apikey=CANARY": true, "client_secret=CANARY": true, "password=CANARY": true,
		"": false, "tokens=3": false, "key=a/b.tgz": false, "X-Amz-Security-Token=x&X-Amz-Signature=y": false, "sv=1&sig=y": false, "token%ZZ=1": false,
	} {
		_, err := ParseURL("https://example.org/b.tgz?" + query)
		if (ReasonOf(err) == Refused) != refused {
			t.Errorf("%s: %v", query, err)
		}
		if err != nil && strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: the error shows the credential: %v", query, err)
		}
	}
}
