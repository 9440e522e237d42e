// SPDX-License-Identifier: Apache-2.0

package gitsig

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func keys(t testing.TB, entries map[string][]byte) Keys {
	t.Helper()
	k, err := ParseKeys(entries)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestM17SignaturesOfGit has git, gpg and ssh-keygen sign commits and tags with the keys that people have.
func TestM17SignaturesOfGit(t *testing.T) {
	tl := newTools(t, "gpg", "ssh-keygen")
	tl.commit()
	tl.pgpKey("other@example.org", "ed25519", "never")
	tl.sshKey("other", "-t", "ed25519")
	makers := map[string]func() (settings []string, entries map[string][]byte, by string){
		"PGPEd25519": func() ([]string, map[string][]byte, string) {
			mail := tl.pgpKey("ed@example.org", "ed25519", "never")
			return signedBy("openpgp", mail), map[string][]byte{"ed.asc": tl.export(mail)}, "Some Body <ed@example.org>"
		},
		"PGPRSA": func() ([]string, map[string][]byte, string) {
			mail := tl.pgpKey("rsa@example.org", "rsa2048", "1y")
			return signedBy("openpgp", mail), map[string][]byte{"rsa.asc": tl.export(mail)}, "Some Body <rsa@example.org>"
		},
		"PGPSubkey": func() ([]string, map[string][]byte, string) {
			tl.gpg("", "--quick-gen-key", "Sub <sub@example.org>", "ed25519", "cert", "never")
			tl.gpg("", "--quick-add-key", strings.TrimSpace(tl.fingerprint("sub@example.org")), "ed25519", "sign", "1y")
			return signedBy("openpgp", "sub@example.org"), map[string][]byte{"sub.asc": tl.export("sub@example.org")}, "Sub <sub@example.org>"
		},
		"PGPBinary": func() ([]string, map[string][]byte, string) {
			mail := tl.pgpKey("bin@example.org", "nistp256", "never")
			return signedBy("openpgp", mail), map[string][]byte{"ring.gpg": []byte(tl.gpg("", "--export", mail))}, "Some Body <bin@example.org>"
		},
		"PGPSeveral": func() ([]string, map[string][]byte, string) {
			one, two := tl.pgpKey("one@example.org", "ed25519", "never"), tl.pgpKey("two@example.org", "ed25519", "never")
			both := "# of the team\n" + string(tl.export(one)) + "\nand\n" + string(tl.export(two))
			return signedBy("openpgp", two), map[string][]byte{"team": []byte(both)}, "Some Body <two@example.org>"
		},
		"SSHEd25519": func() ([]string, map[string][]byte, string) {
			file := tl.sshKey("ed", "-t", "ed25519")
			return signedBy("ssh", file), map[string][]byte{"ed.pub": []byte(tl.read(file + ".pub"))}, " ed@example.org"
		},
		"SSHRSA": func() ([]string, map[string][]byte, string) {
			file := tl.sshKey("rsa", "-t", "rsa", "-b", "2048")
			return signedBy("ssh", file), map[string][]byte{"keys": []byte("# team\n\n" + tl.read(file+".pub"))}, " rsa@example.org"
		},
		"SSHECDSA": func() ([]string, map[string][]byte, string) {
			file := tl.sshKey("ecdsa", "-t", "ecdsa", "-b", "521")
			return signedBy("ssh", file), map[string][]byte{"allowed_signers": []byte("team@example.org " + tl.read(file+".pub"))}, " team@example.org"
		},
		"SSHLimited": func() ([]string, map[string][]byte, string) {
			file := tl.sshKey("limited", "-t", "ed25519")
			line := `a@example.org,*@team.example.org namespaces="file,git",valid-after="20200101",valid-before="20990101Z" ` + tl.read(file+".pub")
			return signedBy("ssh", file), map[string][]byte{"allowed_signers": []byte(line)}, " a@example.org,*@team.example.org"
		},
		"SSHNameless": func() ([]string, map[string][]byte, string) {
			file := tl.sshKey("nameless", "-t", "ed25519")
			public := strings.Join(strings.Fields(tl.read(file + ".pub"))[:2], " ")
			return signedBy("ssh", file), map[string][]byte{"alice.pub": []byte(public)}, " alice.pub"
		},
	}
	for name, maker := range makers {
		t.Run(name, func(t *testing.T) {
			settings, entries, want := maker()
			k := keys(t, entries)
			commit := tl.commit(settings...)
			by, err := k.Commit(tl.raw("commit", commit), now())
			if err != nil || !strings.Contains(by, want) {
				t.Errorf("commit: %q, %v", by, err)
			}
			tag := tl.tag("v1.0.0", commit, settings...)
			by, err = k.Tag(tl.raw("tag", tag), "v1.0.0", commit, now())
			if err != nil || !strings.Contains(by, want) {
				t.Errorf("tag: %q, %v", by, err)
			}
			t.Log(by)
			other := map[string][]byte{"other.asc": tl.export("other@example.org"), "other.pub": []byte(tl.read(tl.home + "/other.pub"))}
			if by, err := keys(t, other).Commit(tl.raw("commit", commit), now()); fetch.ReasonOf(err) != fetch.Unverified || by != "" ||
				!strings.Contains(err.Error(), "not among the 1 that are trusted") {
				t.Errorf("others are not trusted: %q %v", by, err)
			}
		})
	}
}

// fingerprint returns that of a key.
func (tl *tools) fingerprint(mail string) string {
	tl.t.Helper()
	for line := range strings.SplitSeq(tl.gpg("", "--with-colons", "--list-keys", mail), "\n") {
		if fields := strings.Split(line, ":"); fields[0] == "fpr" {
			return fields[9]
		}
	}
	tl.t.Fatalf("%s has no key", mail)
	return ""
}

// TestM17ExtendedKey has a key that is published with its newest self-signature only, which is younger than what it signed.
func TestM17ExtendedKey(t *testing.T) {
	tl := newTools(t, "gpg")
	tl.gpg("", "--faked-system-time", "20260101T000000!", "--quick-gen-key", "Some Body <ext@example.org>", "ed25519", "sign", "1y")
	commit := tl.commit(signedBy("openpgp", "ext@example.org")...)
	tl.gpg("", "--quick-set-expire", tl.fingerprint("ext@example.org"), "5y")
	minimal := tl.gpg("", "--armor", "--export-options", "export-minimal", "--export", "ext@example.org")
	k := keys(t, map[string][]byte{"ext.asc": []byte(minimal)})
	later := time.Now().Add(2 * 365 * 24 * time.Hour) // beyond the first expiry
	if by, err := k.Commit(tl.raw("commit", commit), later); err != nil {
		t.Errorf("%q %v", by, err)
	}
	if by, err := k.Commit(tl.raw("commit", commit), time.Now().Add(6*365*24*time.Hour)); err == nil {
		t.Errorf("expired: %q", by)
	}
}

// TestM17GitAgrees has git judge what is judged here: signed, unsigned, expired, revoked, changed.
func TestM17GitAgrees(t *testing.T) {
	tl := newTools(t, "gpg", "ssh-keygen")
	tl.commit()
	good, bad := tl.pgpKey("good@example.org", "ed25519", "never"), tl.pgpKey("bad@example.org", "ed25519", "never")
	file := tl.sshKey("key", "-t", "ed25519")
	signers := tl.write("allowed", "a@example.org "+tl.read(file+".pub"))
	commits := map[string]string{
		"PGP": tl.commit(signedBy("openpgp", good)...), "Revoked": tl.commit(signedBy("openpgp", bad)...),
		"SSH": tl.commit(signedBy("ssh", file)...), "Unsigned": tl.commit(),
	}
	changed := strings.Replace(string(tl.raw("commit", commits["PGP"])), "message", "massage", 1)
	commits["Changed"] = tl.store("commit", []byte(changed))
	tl.revoke(bad)
	k := keys(t, map[string][]byte{"good": tl.export(good), "bad": tl.export(bad), "allowed_signers": []byte(tl.read(signers))})
	for name, commit := range commits {
		_, err := k.Commit(tl.raw("commit", commit), now())
		_, gits := tl.try(nil, "git", "-c", "gpg.ssh.allowedSignersFile="+signers, "verify-commit", commit)
		if want := name == "PGP" || name == "SSH"; (err == nil) != want || (gits == nil) != want {
			t.Errorf("%s: %v; git says %v", name, err, gits)
		}
	}
}

// revoke imports the revocation that gpg makes with each key.
func (tl *tools) revoke(mail string) {
	tl.t.Helper()
	file := tl.read(filepath.Join(tl.home, "openpgp-revocs.d", tl.fingerprint(mail)+".rev"))
	tl.gpg(strings.Replace(file, ":-----BEGIN", "-----BEGIN", 1), "--import")
}

// FuzzGitSignature compares with git, where it and gpg are installed: what is accepted here, git accepts as well.
func FuzzGitSignature(f *testing.F) {
	alice, pgp := sshKeyOf(f, 1), pgpKeyOf(f, 1)
	line := "alice@example.org " + authorized(alice.PublicKey())
	k := keys(f, map[string][]byte{"alice": []byte(line), "key.asc": public(f, pgp)})
	for _, sign := range []signing{sshSigning(f, alice, nil), pgpSigning(f, pgp.PrivateKey, nil)} {
		f.Add(signCommit(bareHeader, bareBody, sign))
		f.Add(signCommit(bareHeader+"encoding x\n", "\nm\r\n\n", sign))
		f.Add(signCommit(bareHeader, bareBody+sign("x"), sign))
		f.Add([]byte(bareTag + sign(bareTag)))
	}
	f.Add([]byte(bareHeader + bareBody))
	tl := fuzzTools(f, line, public(f, pgp))
	accepted := map[string]bool{}
	f.Fuzz(func(t *testing.T, raw []byte) {
		commit := strings.Repeat("1", 40)
		_, err := k.Commit(raw, today)
		_, tagErr := k.Tag(raw, "v1.0.0", commit, today)
		if err == nil && tagErr == nil {
			t.Errorf("%q is both", raw)
		}
		if tl == nil || err != nil && tagErr != nil || accepted[string(raw)] {
			return
		}
		accepted[string(raw)] = true
		kind := "commit"
		if err != nil {
			kind = "tag"
		}
		own := *tl
		own.t = t
		name := own.store(kind, raw)
		if _, err := own.try(nil, "git", "-c", "gpg.ssh.allowedSignersFile="+tl.home+"/allowed", "verify-"+kind, name); err != nil {
			t.Errorf("%q is accepted here, but not by git: %v", raw, err)
		}
	})
}

// fuzzTools are tools that trust two keys; nil when they are not installed.
func fuzzTools(f *testing.F, line string, pgp []byte) *tools {
	for _, program := range []string{"git", "gpg", "ssh-keygen"} {
		if _, err := exec.LookPath(program); err != nil {
			f.Logf("%s is not installed: nothing to compare with", program)
			return nil
		}
	}
	tl := newTools(f)
	tl.write("allowed", line)
	tl.gpg(string(pgp), "--import")
	return tl
}

// FuzzGitKeys wants that no entry of a Secret is read as a key and shown in a message at once.
func FuzzGitKeys(f *testing.F) {
	f.Add([]byte("alice namespaces=\"git\" " + authorized(sshKeyOf(f, 1).PublicKey())))
	f.Add(public(f, pgpKeyOf(f, 1)))
	f.Add([]byte("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nxjM=\n-----END PGP PUBLIC KEY BLOCK-----"))
	f.Add([]byte("\x99\x01\x0d\x04"))
	f.Fuzz(func(t *testing.T, content []byte) {
		k, err := ParseKeys(map[string][]byte{"x": content})
		if err != nil {
			if fetch.ReasonOf(err) != fetch.Refused || len(err.Error()) > 2000 {
				t.Errorf("%v", err)
			}
			return
		}
		if by, err := k.Commit(signCommit(bareHeader, bareBody, sshSigning(t, sshKeyOf(t, 200), nil)), today); err == nil {
			t.Errorf("%q trusts another signer: %s", content, by)
		}
	})
}
