// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"testing"
)

// TestM15RepositoriesAtAdmission has what git, ssh or a server would misread; internal/fetch/git refuses it as well.
func TestM15RepositoriesAtAdmission(t *testing.T) {
	const form = "must be a URL that begins with https:// (or http://) and holds neither user name, password nor query, or ssh://user@host/path"
	const controls = "must not hold control characters, however they are written"
	cases := map[string]admitted{}
	for url, message := range map[string]string{
		"https://example.org/r.git": "", "http://example.org:3000/a/b": "", "https://[2001:db8::1]/r": "", "https://bücher.example/r": "", "https://example.org/a%20b": "",
		"ssh://example.org/r.git": "", "ssh://git@example.org:2222/~/r": "", "ssh://git@[2001:db8::1]:22/r": "", "ssh://APKA.X@host_1/v1/r": "",
		"--upload-pack=touch /tmp/x": form, "ext::sh -c touch% /tmp/x": form, "file:///etc": form, "/etc": form, "../r": form, "-o": form, "git://example.org/r": form,
		"ssh://-oProxyCommand=x/y": form, "ssh://-oProxyCommand=x@example.org/y": form, "ssh://%2doProxyCommand=x/y": form, "ssh://%2doProxyCommand=x@example.org/y": form,
		"https://-oProxyCommand/x": form, "git@example.org:org/repo.git": form, "example.org:repo": form, "ssh://git:pw@example.org/r": form, "https://user@example.org/r": form,
		"https://example.org/a\nb": form, "https://example.org/a\x1bb": form, "https://example.org/r#x": form, "ssh://git@example.org/": form, "ssh:///r": form,
		"https://example.org/a%0ab": controls, "https://example.org/a%0D%0Ab": controls, "https://example.org/%00": controls, "ssh://git@example.org/a%7fb": controls,
	} {
		want := ""
		if message != "" {
			want = fmt.Sprintf("spec.sources[0].git.url: Invalid value: %q: %s", url, message)
		}
		cases[fmt.Sprintf("%q", url)] = admitted{
			reason: url, spec: fmt.Sprintf("sources: [{git: {url: %q, secretRef: {name: login}}}]", url), want: want,
		}
	}
	checkAdmission(t, "BundleSource", cases)
}

// TestM15ReferenceNamesAtAdmission has names with and without the syntax of git-check-ref-format(1).
func TestM15ReferenceNamesAtAdmission(t *testing.T) {
	cases := map[string]admitted{}
	for name, ok := range map[string]bool{
		"main": true, "feature/a.b": true, "v1.0.0-rc.1+build": true, "@": true, "a@b": true, "ü": true, "a-": true, "#1": true, "it's": true, "a{b}": true, "a|b": true,
		"../../config": false, "a..b": false, "-x": false, "--upload-pack=x": false, "@{u}": false, "a@{1}": false, ".a": false, "a/.b": false, "a.lock": false, "a.lock/b": false,
		"a.": false, "/a": false, "a/": false, "a//b": false, "a b": false, "a~1": false, "a^": false, "a:b": false, "a?": false, "a*": false, "a[0]": false, `a\b`: false, "a\nb": false,
		"a\x7f": false,
	} {
		for field, prefix := range map[string]string{"branch": "", "tag": "", "name": "refs/heads/"} {
			want := ""
			if !ok {
				want = fmt.Sprintf("spec.sources[0].git.ref.%s: Invalid value: %q: must be a name that git check-ref-format takes, not beginning with -", field, prefix+name)
			}
			cases[fmt.Sprintf("%s %q", field, name)] = admitted{
				reason: name, spec: fmt.Sprintf("sources: [{git: {url: https://example.org/r.git, ref: {%s: %q}}}]", field, prefix+name), want: want,
			}
		}
	}
	checkAdmission(t, "BundleSource", cases)
}
