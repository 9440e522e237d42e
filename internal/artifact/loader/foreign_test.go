// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact"
)

// TestT11ForeignArtifacts: a forged status of a Flux source gives access to no other server, and to no artifact of others.
func TestT11ForeignArtifacts(t *testing.T) {
	l, err := New(Options{
		Client: &http.Client{}, CacheDir: t.TempDir(), ServerURLs: []string{"http://satchel.example"}, FluxServerURLs: []string{"http://flux.example."},
	})
	if err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("0", 64)
	git, external := artifact.Owner{Kind: "gitrepository", Namespace: "team", Name: "app"}, artifact.Owner{Kind: "externalartifact", Namespace: "team", Name: "app"}
	tests := map[string]struct {
		owner    artifact.Owner
		url      string
		revision string
		digest   string
		ok       bool
	}{
		"own":              {git, "http://flux.example./gitrepository/team/app/abc.tar.gz", "main@sha1:abc", digest, true},
		"other server":     {git, "http://evil.example/gitrepository/team/app/abc.tar.gz", "main@sha1:abc", digest, false},
		"longer host":      {git, "http://flux.example.evil/gitrepository/team/app/abc.tar.gz", "main@sha1:abc", digest, false},
		"our server":       {git, "http://satchel.example/gitrepository/team/app/abc.tar.gz", "main@sha1:abc", digest, false},
		"other kind":       {git, "http://flux.example./bucket/team/app/abc.tar.gz", "main@sha1:abc", digest, false},
		"other namespace":  {git, "http://flux.example./gitrepository/other/app/abc.tar.gz", "main@sha1:abc", digest, false},
		"other name":       {git, "http://flux.example./gitrepository/team/apps/abc.tar.gz", "main@sha1:abc", digest, false},
		"dots":             {git, "http://flux.example./gitrepository/team/app/..", "main@sha1:abc", digest, false},
		"up":               {git, "http://flux.example./gitrepository/team/app/../../other/app/abc.tar.gz", "main@sha1:abc", digest, false},
		"escaped":          {git, "http://flux.example./gitrepository/team/app/%2e%2e", "main@sha1:abc", digest, false},
		"query":            {git, "http://flux.example./gitrepository/team/app/abc.tar.gz?x=/", "main@sha1:abc", digest, false},
		"no file":          {git, "http://flux.example./gitrepository/team/app/", "main@sha1:abc", digest, false},
		"no revision":      {git, "http://flux.example./gitrepository/team/app/abc.tar.gz", "", digest, false},
		"huge revision":    {git, "http://flux.example./gitrepository/team/app/abc.tar.gz", strings.Repeat("x", 513), digest, false},
		"sha512":           {git, "http://flux.example./gitrepository/team/app/abc.tar.gz", "main@sha1:abc", "sha512:" + strings.Repeat("0", 128), false},
		"external":         {external, "http://flux.example./externalartifact/team/app/abc.tar.gz", "latest@sha256:abc", digest, true},
		"external of ours": {external, "http://satchel.example/bundlesource/team/app/abc.tar.gz", "latest@sha256:abc", digest, true},
		"of another":       {external, "http://satchel.example/bundlesource/other/app/abc.tar.gz", "latest@sha256:abc", digest, false},
		"no owner":         {artifact.Owner{Kind: "gitrepository", Namespace: "../team", Name: "app"}, "http://flux.example./gitrepository/../team/app/abc.tar.gz", "main@sha1:abc", digest, false},
	}
	for name, tt := range tests {
		_, err := l.Admit(tt.owner, meta.Artifact{URL: tt.url, Revision: tt.revision, Digest: tt.digest})
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
