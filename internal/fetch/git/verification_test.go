// SPDX-License-Identifier: Apache-2.0

package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/verify/gitsig"
)

// author signs with git and ssh-keygen.
type author struct {
	*repository
	file string
	keys gitsig.Keys
}

func newAuthor(t *testing.T, r *repository, name string) author {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed, which git signs with")
	}
	key := newKey(t, "ed25519")
	a := author{repository: r, file: filepath.Join(t.TempDir(), "key")}
	if err := os.WriteFile(a.file, key.pem(t, ""), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	line := name + "@example.org " + string(ssh.MarshalAuthorizedKey(key.PublicKey()))
	if a.keys, err = gitsig.ParseKeys(map[string][]byte{"allowed_signers": []byte(line)}); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a author) signed(args ...string) string {
	a.t.Helper()
	return a.git(nil, append([]string{"-c", "gpg.format=ssh", "-c", "user.signingKey=" + a.file}, args...)...)
}

// sign makes a signed commit of a tree, to which nothing points yet.
func (a author) sign(message string) string {
	a.t.Helper()
	return a.signed("commit-tree", "-S", "-m", message, a.tree(leaf{"100644", "a", a.blob(message)}))
}

func (a author) unsigned(message string) string {
	a.t.Helper()
	return a.git(nil, "commit-tree", "-m", message, a.tree(leaf{"100644", "a", a.blob(message)}))
}

func TestM17Modes(t *testing.T) {
	r := newRepository(t)
	alice, mallory := newAuthor(t, r, "alice"), newAuthor(t, r, "mallory")
	point := func(name, commit string) { r.git(nil, "update-ref", name, commit) }
	signedCommit, unsignedCommit := alice.sign("signed"), alice.unsigned("unsigned")
	point("refs/heads/main", signedCommit)
	point("refs/heads/unsigned", unsignedCommit)
	point("refs/heads/foreign", mallory.sign("foreign"))
	alice.signed("tag", "-s", "-m", "x", "v1.0.0", signedCommit)    // both
	alice.signed("tag", "-s", "-m", "x", "v1.1.0", unsignedCommit)  // the tag only
	r.git(nil, "tag", "-a", "-m", "x", "v1.2.0", signedCommit)      // the commit only
	r.git(nil, "tag", "v1.3.0", signedCommit)                       // the commit only, and no tag object
	mallory.signed("tag", "-s", "-m", "x", "v1.4.0", signedCommit)  // the tag by another signer
	alice.signed("tag", "-s", "-m", "x", "deep/v1.5", signedCommit) // a name with a slash
	point("refs/tags/v1.6.0", r.git(nil, "rev-parse", "v1.0.0"))    // a signed tag under another name
	point("refs/tags/v1.7.0", r.git([]byte("object "+r.git(nil, "rev-parse", "v1.0.0")+"\ntype tag\ntag v1.7.0\ntagger a <a@b> 1 +0000\n\nx\n"), "hash-object", "-t", "tag", "-w", "--stdin"))
	const tag, commit, both = "tag: ssh SHA256:", "commit: ssh SHA256:", "; commit: ssh SHA256:"
	cases := map[string]struct {
		reason string
		mode   Mode
		o      Options
		by     string // "" for a refusal
		text   string
	}{
		"Branch":            {"a signed commit", VerifyHEAD, Options{}, commit, ""},
		"BranchUnsigned":    {"an unsigned one", VerifyHEAD, Options{Branch: "unsigned"}, "", "the commit is not verified: it is not signed"},
		"BranchForeign":     {"one by another signer", VerifyHEAD, Options{Branch: "foreign"}, "", "not among the 1 that are trusted"},
		"Pinned":            {"a commit by its hash", VerifyHEAD, Options{Commit: signedCommit}, commit, ""},
		"PinnedUnsigned":    {"a hash is no signature", VerifyHEAD, Options{Commit: unsignedCommit}, "", "not signed"},
		"TagHEAD":           {"the commit behind a tag", VerifyHEAD, Options{Tag: "v1.2.0"}, commit, ""},
		"TagHEADUnsigned":   {"a signed tag over an unsigned commit", VerifyHEAD, Options{Tag: "v1.1.0"}, "", "the commit is not verified"},
		"Tag":               {"a signed tag over an unsigned commit", VerifyTag, Options{Tag: "v1.1.0"}, tag, ""},
		"TagUnsigned":       {"an unsigned tag over a signed commit", VerifyTag, Options{Tag: "v1.2.0"}, "", `the tag "v1.2.0" is not verified: it is not signed`},
		"TagLight":          {"no tag object", VerifyTag, Options{Tag: "v1.3.0"}, "", "no object of its own"},
		"TagForeign":        {"one by another signer", VerifyTag, Options{Tag: "v1.4.0"}, "", "not among the 1 that are trusted"},
		"TagSlash":          {"a name with a slash", VerifyTag, Options{Tag: "deep/v1.5"}, tag, ""},
		"TagSwapped":        {"an old tag under a new name", VerifyTag, Options{Tag: "v1.6.0"}, "", `made as the tag "v1.0.0"`},
		"TagNested":         {"an unsigned tag of a signed tag", VerifyTag, Options{Tag: "v1.7.0"}, "", "not signed"},
		"SemVer":            {"the newest version in the range", VerifyTag, Options{SemVer: "<=1.1.0"}, tag, ""},
		"SemVerUnsigned":    {"the newest is not signed: no older one is taken", VerifyTag, Options{SemVer: "<=1.2.0"}, "", `"v1.2.0"`},
		"Name":              {"a tag by its full name", VerifyTag, Options{Name: "refs/tags/v1.0.0"}, tag, ""},
		"BothSigned":        {"tag and commit", VerifyTagAndHEAD, Options{Tag: "v1.0.0"}, both, ""},
		"BothTagOnly":       {"a signed tag over an unsigned commit", VerifyTagAndHEAD, Options{Tag: "v1.1.0"}, "", "the commit is not verified"},
		"BothCommitOnly":    {"an unsigned tag over a signed commit", VerifyTagAndHEAD, Options{Tag: "v1.2.0"}, "", "the tag"},
		"BothLight":         {"no tag object", VerifyTagAndHEAD, Options{Tag: "v1.3.0"}, "", "no object of its own"},
		"BothForeignTag":    {"a tag by another signer", VerifyTagAndHEAD, Options{Tag: "v1.4.0"}, "", "the tag"},
		"NoTrustedKeys":     {"no keys at all", VerifyHEAD, Options{Branch: "main", Verify: &Verification{Mode: VerifyHEAD}}, "", "not among the 0 that are trusted"},
		"WithoutAnyMode":    {"nothing configured", "", Options{Branch: "unsigned"}, "", ""},
		"DirectoryIsBeside": {"a folder of a signed commit", VerifyHEAD, Options{Directory: "."}, commit, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.URL = r.url
			if tc.o.Verify == nil && tc.mode != "" {
				tc.o.Verify = &Verification{Mode: tc.mode, Keys: alice.keys}
			}
			resolved, files, err := pull(t, tc.o)
			switch {
			case tc.mode == "":
				if err != nil || resolved.VerifiedBy != "" || files["a"] == "" {
					t.Errorf("%s: %+v %v", tc.reason, resolved, err)
				}
			case tc.by == "":
				if fetch.ReasonOf(err) != fetch.Unverified || !strings.Contains(err.Error(), tc.text) || len(files) > 0 || resolved.VerifiedBy != "" {
					t.Errorf("%s: %+v %v %v", tc.reason, resolved, files, err)
				}
			case err != nil || !strings.Contains(resolved.VerifiedBy, tc.by) || !strings.HasSuffix(resolved.VerifiedBy, " alice@example.org") || files["a"] == "":
				t.Errorf("%s: %+v %v", tc.reason, resolved, err)
			}
		})
	}
}

// TestM17TagMovedAfterResolving has the tag replaced between the two requests.
func TestM17TagMovedAfterResolving(t *testing.T) {
	r := newRepository(t)
	alice := newAuthor(t, r, "alice")
	first, second := alice.sign("1"), alice.sign("2")
	r.git(nil, "update-ref", "refs/heads/one", first)
	alice.signed("tag", "-s", "-m", "x", "v1", first)
	f := fetcher(t, Options{URL: r.url, Tag: "v1", Verify: &Verification{Mode: VerifyTag, Keys: alice.keys}})
	resolved, err := f.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	alice.signed("tag", "-f", "-s", "-m", "x", "v1", second)
	if _, files, err := fetchInto(t, f, resolved); fetch.ReasonOf(err) != fetch.Moved || len(files) > 0 {
		t.Errorf("the tag that is verified must be that of the commit: %v %v", files, err)
	}
	r.git(nil, "tag", "-d", "v1")
	if _, _, err := fetchInto(t, f, resolved); fetch.ReasonOf(err) != fetch.Moved {
		t.Errorf("a tag that is gone: %v", err)
	}
	forged := resolved
	forged.Digest = "sha1:" + second
	if _, _, err := fetchInto(t, f, forged); fetch.ReasonOf(err) != fetch.Moved {
		t.Errorf("another commit: %v", err)
	}
}

// TestM17VerifiedSubmodules has the signed commit say which commit a submodule is.
func TestM17VerifiedSubmodules(t *testing.T) {
	r := newRepository(t)
	alice := newAuthor(t, r, "alice")
	lib := r.sibling("lib.git")
	inner := lib.files("main", "l", "lib")
	tree := r.tree(leaf{"100644", ".gitmodules", r.blob(module("lib", "../lib.git"))}, leaf{"160000", "lib", inner})
	r.git(nil, "update-ref", "refs/heads/main", alice.signed("commit-tree", "-S", "-m", "x", tree))
	resolved, files, err := pull(t, Options{URL: r.url, Submodules: true, Verify: &Verification{Mode: VerifyHEAD, Keys: alice.keys}})
	if err != nil || files["lib/l"] != "lib" || !strings.HasPrefix(resolved.VerifiedBy, "commit: ") {
		t.Errorf("%+v %v %v", resolved, files, err)
	}
}

func TestM14VerificationThatCannotBe(t *testing.T) {
	cases := map[string]struct {
		reason string
		mode   Mode
		o      Options
	}{
		"NoMode":   {"what is verified", "", Options{}},
		"Unknown":  {"another spelling", "head", Options{}},
		"Branch":   {"a branch has no tag", VerifyTag, Options{Branch: "main"}},
		"Default":  {"neither has the default", VerifyTagAndHEAD, Options{}},
		"Commit":   {"nor a commit", VerifyTag, Options{Commit: someCommit}},
		"Name":     {"nor another reference", VerifyTag, Options{Name: "refs/heads/main"}},
		"NearName": {"nor one that looks like a tag", VerifyTag, Options{Name: "refs/tagsx/v1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.URL, tc.o.Client, tc.o.Verify = "https://example.org/r", client(), &Verification{Mode: tc.mode}
			if _, err := New(tc.o); fetch.ReasonOf(err) != fetch.Refused {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
