// SPDX-License-Identifier: Apache-2.0

package registryauth

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChallenges(t *testing.T) {
	cases := map[string]struct {
		reason string
		lines  []string
		scheme string
		params map[string]string
	}{
		"DockerHub": {
			"as it is", []string{`Bearer realm="https://auth.docker.io/token",service="registry.docker.io"`},
			"bearer", map[string]string{"realm": "https://auth.docker.io/token", "service": "registry.docker.io"},
		},
		"Spaces": {"allowed", []string{`bearer  REALM = "r" ,  service = s`}, "bearer", map[string]string{"realm": "r", "service": "s"}},
		"Quoted": {"escapes", []string{`Bearer realm="a\"b,c=d\\"`}, "bearer", map[string]string{"realm": `a"b,c=d\`}},
		"Twice":  {"the first counts", []string{`Bearer realm="a",realm="b"`}, "bearer", map[string]string{"realm": "a"}},
		"Lines":  {"bearer is preferred", []string{`Basic realm="x"`, `Bearer realm="r"`}, "bearer", map[string]string{"realm": "r"}},
		"Line": {
			"several in one line", []string{`Negotiate, Basic realm="x", Bearer realm="r",scope="repository:a:pull,push"`},
			"bearer", map[string]string{"realm": "r", "scope": "repository:a:pull,push"},
		},
		"Ticket":   {"what is no parameter is passed over", []string{`Negotiate YII=, Basic realm="x"`}, "basic", map[string]string{"realm": "x"}},
		"Padded":   {"likewise", []string{`Negotiate YII==, Basic realm="x"`}, "basic", map[string]string{"realm": "x"}},
		"NoRealm":  {"of no use", []string{`Bearer service="s"`, `Basic`}, "basic", map[string]string{}},
		"Unending": {"no end", []string{`Bearer realm="r`}, "", nil},
		"Empty":    {"nothing", []string{``, ` , ,`}, "", nil},
		"Garbage":  {"nothing", []string{`"Bearer realm="r"`, "\x00\xff"}, "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, found := challengeOf(http.Header{"Www-Authenticate": tc.lines})
			if found != (tc.scheme != "") || got.scheme != tc.scheme {
				t.Fatalf("%s: %+v", tc.reason, got)
			}
			if diff := cmp.Diff(tc.params, got.params); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull"`)
	f.Add(`Negotiate YII==, Basic realm="x\"y", Bearer realm=r , =,`)
	f.Add("Bearer realm=\"http://169.254.169.254/\r\nX: y\"")
	f.Fuzz(func(t *testing.T, line string) {
		found := parseChallenges(line)
		if len(found) > maxChallenges {
			t.Errorf("%d challenges", len(found))
		}
		for _, c := range found {
			if c.scheme == "" || c.scheme != strings.ToLower(c.scheme) {
				t.Errorf("the scheme %q", c.scheme)
			}
			if realm, err := parseRealm(c.params["realm"]); err == nil && (realm.User != nil || realm.Hostname() == "") {
				t.Errorf("the realm %s", realm)
			}
		}
		_, _ = challengeOf(http.Header{"Www-Authenticate": {line}})
	})
}
