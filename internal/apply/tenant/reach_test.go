// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"encoding/base64"
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// jwt is a token with claims, and a signature of no meaning.
func jwt(claims, signature string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return "token: " + encode([]byte(`{"alg":"RS256"}`)) + "." + encode([]byte(claims)) + "." + signature
}

// T31: what of a kubeconfig stays when credentials are renewed.
func TestT31Reach(t *testing.T) {
	same := jwt(`{"iss":"a","sub":"b","exp":1}`, "x")
	for name, tc := range map[string]struct {
		cluster, user          string
		server, authority, who bool // differ
	}{
		"the same":         {aServer, same, false, false, false},
		"a renewed token":  {aServer, jwt(`{"iss":"a","sub":"b","exp":2,"jti":"c"}`, "y"), false, false, false},
		"another subject":  {aServer, jwt(`{"iss":"a","sub":"c"}`, "x"), false, false, true},
		"another issuer":   {aServer, jwt(`{"iss":"b","sub":"b"}`, "x"), false, false, true},
		"no subject":       {aServer, jwt(`{"iss":"a"}`, "x"), false, false, true},
		"no claims":        {aServer, jwt(`[]`, "x"), false, false, true},
		"a static token":   {aServer, "token: a.b.c", false, false, true},
		"a name beside it": {aServer, same + ", username: x, password: y", false, false, true},
		"another server":   {aServer + ", tls-server-name: other", same, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			was, now := reachOf(t, aServer, same), reachOf(t, tc.cluster, tc.user)
			if got := [3]bool{was.Server != now.Server, was.Authorities != now.Authorities, was.User != now.User}; got != [3]bool{tc.server, tc.authority, tc.who} {
				t.Errorf("server, authorities, user differ: %v", got)
			}
		})
	}
}

func reachOf(t *testing.T, cluster, user string) tenant.Reach {
	t.Helper()
	parsed, err := tenant.ParseKubeconfig([]byte(kubeconfig(cluster, user)))
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Reach()
}
