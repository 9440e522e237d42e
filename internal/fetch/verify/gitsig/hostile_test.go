// SPDX-License-Identifier: Apache-2.0

package gitsig

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"golang.org/x/crypto/ssh"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// today is when these tests verify.
var today = born.Add(30 * 24 * time.Hour)

func TestM17CommitsThatAreRefused(t *testing.T) {
	alice, mallory := sshKeyOf(t, 1), sshKeyOf(t, 2)
	k := keys(t, map[string][]byte{"alice.pub": []byte(authorized(alice.PublicKey()))})
	sign, other := sshSigning(t, alice, nil), sshSigning(t, mallory, nil)
	good := string(signCommit(bareHeader, bareBody, sign))
	signature := sign(bareHeader + bareBody)
	with := func(header, body string) string { return string(signCommit(header, body, sign)) }
	cases := map[string]struct{ reason, raw, text string }{
		"Good":            {"the normal case", good, ""},
		"Unsigned":        {"nothing to verify", bareHeader + bareBody, "not signed"},
		"Empty":           {"nothing at all", "", "does not end"},
		"WrongKey":        {"another signer", string(signCommit(bareHeader, bareBody, other)), "not among the 1"},
		"OtherTree":       {"other content", strings.Replace(good, "tree 4b", "tree 5b", 1), "does not match"},
		"OtherMessage":    {"other words", strings.Replace(good, "message", "massage", 1), "does not match"},
		"Appended":        {"more words", good + "x", "does not match"},
		"OtherParent":     {"another history", strings.Replace(good, "\nauthor", "\nparent "+bareTree+"\nauthor", 1), "does not match"},
		"TwoSignatures":   {"which one counts", strings.Replace(good, "\n\nmessage", "\n"+asHeader(signature)+"\nmessage", 1), "two signatures"},
		"SignedTwice":     {"the second over the first", string(signCommit(bareHeader+asHeader(other(bareHeader+bareBody)), bareBody, sign)), "two signatures"},
		"OtherAlgorithm":  {"one for SHA-256 names", strings.Replace(good, "\ngpgsig ", "\ngpgsig-sha256 "+signature[:10]+"\ngpgsig ", 1), "not supported"},
		"InMessage":       {"no header", bareHeader + "\n" + asHeader(signature) + "message\n", "not signed"},
		"TwoTrees":        {"which one is taken", with("tree "+bareTree+"\n"+bareHeader, bareBody), "not where it belongs"},
		"TreeLater":       {"which one is taken", with(bareHeader+"tree "+strings.Repeat("0", 40)+"\n", bareBody), "not where it belongs"},
		"TreeFolded":      {"which one is taken", with(strings.Replace(bareHeader, "\nauthor", "\n "+bareTree+"\nauthor", 1), bareBody), "several lines"},
		"NoTree":          {"nothing is taken", with(strings.Replace(bareHeader, "tree", "three", 1), bareBody), "not where it belongs"},
		"TwoAuthors":      {"who made it", with(strings.Replace(bareHeader, "committer", "author x <x@x> 1 +0000\ncommitter", 1), bareBody), "not where it belongs"},
		"LateParent":      {"git stops reading there", with(bareHeader+"parent "+bareTree+"\n", bareBody), "not where it belongs"},
		"NoCommitter":     {"when was it made", with(strings.SplitAfter(bareHeader, "\n")[0]+strings.SplitAfter(bareHeader, "\n")[1], bareBody), "not where it belongs"},
		"NoTime":          {"when was it made", with(strings.Replace(bareHeader, "1767225600 +0000\ncommitter a <a@example.org> 1767225600", "1767225600 +0000\ncommitter a <a@example.org> x", 1), bareBody), "does not say when"},
		"NUL":             {"git stops reading there", with(bareHeader, "\nmessage\x00more\n"), "NUL"},
		"NULHeader":       {"git stops reading there", with(bareHeader+"x y\x00z\n", bareBody), "NUL"},
		"CRLFHeader":      {"read in two ways", with(strings.ReplaceAll(bareHeader, "\n", "\r\n"), bareBody), "carriage return"},
		"CRLFSignature":   {"some readers take it off", strings.Replace(good, "-----BEGIN SSH SIGNATURE-----\n", "-----BEGIN SSH SIGNATURE-----\r\n", 1), "carriage return"},
		"CutSignature":    {"no end", strings.Replace(good, "\n -----END SSH SIGNATURE-----", "", 1), "not one armored block"},
		"CutHeader":       {"no end", good[:200], "header"},
		"TwoBlocks":       {"which one counts", strings.Replace(good, "-----END SSH SIGNATURE-----", "-----END SSH SIGNATURE-----\n "+strings.ReplaceAll(strings.TrimSpace(signature), "\n", "\n "), 1), "not one armored block"},
		"Trailing":        {"what is that", strings.Replace(good, "-----END SSH SIGNATURE-----", "-----END SSH SIGNATURE-----\n trailing", 1), "not one armored block"},
		"Leading":         {"what is that", strings.Replace(good, "gpgsig ", "gpgsig leading\n ", 1), "not one armored block"},
		"Kind":            {"S/MIME", strings.ReplaceAll(good, "SSH SIGNATURE", "SIGNED MESSAGE"), "kind SIGNED MESSAGE"},
		"OtherKind":       {"one taken for the other", strings.ReplaceAll(good, "SSH SIGNATURE", "PGP SIGNATURE"), "malformed"},
		"EmptySignature":  {"nothing", strings.Replace(good, asHeader(signature), "gpgsig \n", 1), "not one armored block"},
		"Huge":            {"more than anybody needs", strings.Replace(good, "gpgsig ", "gpgsig "+strings.Repeat("x", 300_000), 1), "more than 262144 bytes"},
		"SpaceFirst":      {"continues nothing", " x\n" + good, "begins with a space"},
		"NoValue":         {"a line that is none", with(bareHeader+"x\n", bareBody), "without a value"},
		"FoldedElsewhere": {"a header of git's own", with(bareHeader+"mergetag object "+bareTree+"\n type commit\n tag v1\n \n signed\n", bareBody), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			by, err := k.Commit([]byte(tc.raw), today)
			checkVerdict(t, tc.reason, by, err, tc.text)
		})
	}
}

// checkVerdict wants a signature to be accepted when text is "", and otherwise refused with it.
func checkVerdict(t *testing.T, reason, by string, err error, text string) {
	t.Helper()
	switch {
	case text == "" && (err != nil || by == ""):
		t.Errorf("%s: %q, %v", reason, by, err)
	case text != "" && (fetch.ReasonOf(err) != fetch.Unverified || by != "" || !strings.Contains(err.Error(), text)):
		t.Errorf("%s: %q, %v", reason, by, err)
	}
}

// TestM17BytesAsTheyStand has commits that go-git writes otherwise than it read them.
func TestM17BytesAsTheyStand(t *testing.T) {
	alice := sshKeyOf(t, 1)
	k := keys(t, map[string][]byte{"alice.pub": []byte(authorized(alice.PublicKey()))})
	cases := map[string]struct{ header, body string }{
		"Spaces":   {strings.Replace(bareHeader, "author a <", "author  a  <", 1), bareBody},
		"TimeZone": {strings.ReplaceAll(bareHeader, "+0000", "-0000"), bareBody},
		"OddZone":  {strings.ReplaceAll(bareHeader, "+0000", "+051800"), bareBody},
		"Header":   {bareHeader + "HG:extra x\n", bareBody},
		"NoFinal":  {bareHeader, "\nmessage"},
		"Blank":    {bareHeader, "\n\n\nmessage\n\n\n"},
		"NoBody":   {bareHeader, "\n"},
		"CRLFBody": {bareHeader, "\nmessage\r\nmore\r\n"},
		"Latin":    {bareHeader + "encoding ISO-8859-1\n", "\nm\xe9ssage\n"},
	}
	rewritten := 0
	for name, tc := range cases {
		raw := signCommit(tc.header, tc.body, sshSigning(t, alice, nil))
		if by, err := k.Commit(raw, today); err != nil {
			t.Errorf("%s: %q %v", name, by, err)
		}
		if !bytes.Equal(goGitPayload(t, raw), []byte(tc.header+tc.body)) {
			rewritten++
		}
	}
	if rewritten < 3 {
		t.Errorf("go-git writes only %d of them otherwise, so this tested little", rewritten)
	}
}

// goGitPayload is what go-git writes of what it understood.
func goGitPayload(t *testing.T, raw []byte) []byte {
	t.Helper()
	stored := &plumbing.MemoryObject{}
	stored.SetType(plumbing.CommitObject)
	if _, err := stored.Write(raw); err != nil {
		t.Fatal(err)
	}
	var commit object.Commit
	if err := commit.Decode(stored); err != nil {
		return nil
	}
	commit.Hash = plumbing.ZeroHash // or it would copy what it read
	out := &plumbing.MemoryObject{}
	if err := commit.EncodeWithoutSignature(out); err != nil {
		return nil
	}
	reader, err := out.Reader()
	if err != nil {
		t.Fatal(err)
	}
	var data bytes.Buffer
	if _, err := data.ReadFrom(reader); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func TestM17SSHSignaturesThatAreRefused(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	alice, mallory := sshKeyOf(t, 1), sshKeyOf(t, 2)
	big, err := ssh.NewSignerFromSigner(fixedRSA(1))
	if err != nil {
		t.Fatal(err)
	}
	old, err := ssh.NewSignerWithAlgorithms(big.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSA})
	if err != nil {
		t.Fatal(err)
	}
	modern, err := ssh.NewSignerWithAlgorithms(big.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSASHA512})
	if err != nil {
		t.Fatal(err)
	}
	small, err := ssh.NewSignerFromSigner(rsaKey(t, 1024))
	if err != nil {
		t.Fatal(err)
	}
	certificate := &ssh.Certificate{Key: alice.PublicKey(), CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
	if err := certificate.SignCert(zeros{}, mallory); err != nil {
		t.Fatal(err)
	}
	plain := []byte("alice@example.org " + authorized(alice.PublicKey()))
	lines := func(options string, key ssh.PublicKey) []byte {
		return []byte("alice@example.org " + options + " " + authorized(key))
	}
	cases := map[string]struct {
		reason  string
		trusted []byte
		sign    signing
		text    string
	}{
		"Good":          {"the normal case", plain, sshSigning(t, alice, nil), ""},
		"SHA256":        {"the other hash", plain, sshSigning(t, alice, func(e *envelope) { e.HashAlgorithm = "sha256" }), ""},
		"RSA":           {"with SHA-2", lines("", modern.PublicKey()), sshSigning(t, modern, nil), ""},
		"RSASHA1":       {"with SHA-1", lines("", old.PublicKey()), sshSigning(t, old, nil), "algorithm ssh-rsa is not accepted"},
		"HashSHA1":      {"over SHA-1", plain, sshSigning(t, alice, func(e *envelope) { e.HashAlgorithm = "sha1" }), "not supported"},
		"Namespace":     {"made for files", plain, sshSigning(t, alice, func(e *envelope) { e.Namespace = "file" }), `made for file, not for "git"`},
		"NoNamespace":   {"made for anything", plain, sshSigning(t, alice, func(e *envelope) { e.Namespace = "" }), `not for "git"`},
		"Version":       {"unknown", plain, sshSigning(t, alice, func(e *envelope) { e.Version = 2 }), "malformed"},
		"Reserved":      {"unknown", plain, sshSigning(t, alice, func(e *envelope) { e.Reserved = "x" }), "not supported"},
		"Impersonated":  {"the trusted key is named, another one signed", plain, sshSigning(t, mallory, func(e *envelope) { e.PublicKey = alice.PublicKey().Marshal() }), "does not match"},
		"Certificate":   {"certified by an unknown authority", plain, sshSigning(t, alice, func(e *envelope) { e.PublicKey = certificate.Marshal() }), "certificate"},
		"Garbage":       {"no key", plain, sshSigning(t, alice, func(e *envelope) { e.PublicKey = []byte("x") }), "malformed"},
		"NoSignature":   {"an empty one", plain, sshSigning(t, alice, func(e *envelope) { e.Signature = []byte{} }), "malformed"},
		"Small":         {"RSA of 1024 bits", plain, sshSigning(t, small, nil), "1024 bits"},
		"Expired":       {"no longer valid", lines(`valid-before="20260115"`, alice.PublicKey()), sshSigning(t, alice, nil), "expired"},
		"NotYet":        {"not valid yet", lines(`valid-after="20260201"`, alice.PublicKey()), sshSigning(t, alice, nil), "not valid yet"},
		"WhenMade":      {"not valid when it was made", lines(`valid-after="20260115"`, alice.PublicKey()), sshSigning(t, alice, nil), "not valid yet"},
		"Valid":         {"valid then and now", lines(`valid-after="20251231",valid-before="20270101"`, alice.PublicKey()), sshSigning(t, alice, nil), ""},
		"ForFiles":      {"trusted for something else", lines(`namespaces="file"`, alice.PublicKey()), sshSigning(t, alice, nil), "not trusted for the namespace"},
		"NotForGit":     {"trusted for all else", lines(`namespaces="*,!git"`, alice.PublicKey()), sshSigning(t, alice, nil), "not trusted for the namespace"},
		"ForGit":        {"among others", lines(`namespaces="file,g*"`, alice.PublicKey()), sshSigning(t, alice, nil), ""},
		"SecondLine":    {"one of two lines counts", append(lines(`namespaces="file"`, alice.PublicKey()), plain...), sshSigning(t, alice, nil), ""},
		"Base64":        {"no base64", plain, func(string) string { return "-----BEGIN SSH SIGNATURE-----\n???\n-----END SSH SIGNATURE-----\n" }, "malformed"},
		"Magic":         {"something else", plain, func(string) string { return sshArmor([]byte("SSHKEY\x00\x00")) }, "malformed"},
		"NothingInside": {"empty", plain, func(string) string { return "-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n" }, "malformed"},
		"Trailing": {"bytes after the end", plain, func(payload string) string {
			e := &envelope{Version: 1, PublicKey: alice.PublicKey().Marshal(), Namespace: "git", HashAlgorithm: "sha512", Signature: []byte("x")}
			return sshArmor(append(append([]byte(magic), ssh.Marshal(*e)...), payload...))
		}, "malformed"},
		"Touched":   {"a security key, touched", lines("", touchKey(t)), touchSigning(t, 1), ""},
		"Untouched": {"a security key that was not touched", lines("", touchKey(t)), touchSigning(t, 0), "does not match"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := keys(t, map[string][]byte{"allowed_signers": tc.trusted})
			by, err := k.Commit(signCommit(bareHeader, bareBody, tc.sign), today)
			checkVerdict(t, tc.reason, by, err, tc.text)
		})
	}
}

// zeros is no randomness at all.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// touchKey is the public half of a security key (PROTOCOL.u2f), in software.
func touchKey(t *testing.T) ssh.PublicKey {
	t.Helper()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize))
	key, err := ssh.ParsePublicKey(ssh.Marshal(struct {
		Type        string
		Key         []byte
		Application string
	}{ssh.KeyAlgoSKED25519, private.Public().(ed25519.PublicKey), "ssh:"}))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// touchSigning signs as such a key does, with its flags.
func touchSigning(t *testing.T, flags byte) signing {
	return func(payload string) string {
		t.Helper()
		e := &envelope{Version: 1, PublicKey: touchKey(t).Marshal(), Namespace: "git", HashAlgorithm: "sha512"}
		over := append([]byte(magic), ssh.Marshal(message{e.Namespace, "", e.HashAlgorithm, hashes["sha512"]([]byte(payload))})...)
		application, content := sha256.Sum256([]byte("ssh:")), sha256.Sum256(over)
		blob := append(append(append(application[:], flags), 0, 0, 0, 1), content[:]...)
		private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize))
		e.Signature = ssh.Marshal(ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: ed25519.Sign(private, blob), Rest: []byte{flags, 0, 0, 0, 1}})
		return sshArmor(append([]byte(magic), ssh.Marshal(*e)...))
	}
}

func TestM17PGPSignaturesThatAreRefused(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	day := uint32(24 * 60 * 60)
	alice, mallory := pgpKeyOf(t, 1), pgpKeyOf(t, 2)
	small := pgpKeyFrom(t, rsaKey(t, 1024), at(born))
	expired := pgpKeyFrom(t, fixedRSA(3), &packet.Config{Time: at(born).Time, KeyLifetimeSecs: day})
	revoked := pgpKeyFrom(t, fixedRSA(4), at(born))
	if err := revoked.Revoke(packet.KeyCompromised, "", at(born.Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	retired := pgpKeyFrom(t, fixedRSA(5), at(born))
	if err := retired.Revoke(packet.KeyRetired, "", at(born.Add(48*time.Hour))); err != nil {
		t.Fatal(err)
	}
	sub := pgpKeyFrom(t, fixedRSA(6), at(born))
	if err := sub.AddSigningSubkey(at(born)); err != nil {
		t.Fatal(err)
	}
	gone := pgpKeyFrom(t, fixedRSA(7), at(born))
	if err := gone.AddSigningSubkey(at(born)); err != nil {
		t.Fatal(err)
	}
	if err := gone.Subkeys[0].Revoke(packet.KeySuperseded, "", at(born.Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	certifier := pgpKeyFrom(t, fixedRSA(8), at(born))
	for _, identity := range certifier.Identities {
		for _, certification := range identity.SelfCertifications {
			certification.Packet.FlagSign = false
			if err := certification.Packet.SignUserId(identity.UserId.Id, certifier.PrimaryKey, certifier.PrivateKey, at(born)); err != nil {
				t.Fatal(err)
			}
		}
	}
	forged := *mallory.PrivateKey
	forged.PublicKey = *alice.PrimaryKey
	by := func(e *openpgp.Entity, change func(*packet.Signature)) signing {
		return pgpSigning(t, e.PrivateKey, change)
	}
	cases := map[string]struct {
		reason  string
		trusted *openpgp.Entity
		sign    signing
		text    string
	}{
		"Good":         {"the normal case", alice, by(alice, nil), ""},
		"SHA256":       {"the other hash", alice, by(alice, func(s *packet.Signature) { s.Hash = crypto.SHA256 }), ""},
		"SHA1":         {"with SHA-1", alice, by(alice, func(s *packet.Signature) { s.Hash = crypto.SHA1 }), "SHA-1 is not accepted"},
		"WrongKey":     {"another signer", alice, by(mallory, nil), "not among the 1"},
		"Impersonated": {"the trusted key is named, another one signed", alice, pgpSigning(t, &forged, nil), "does not match"},
		"Text":         {"line ends would not count", alice, by(alice, func(s *packet.Signature) { s.SigType = packet.SigTypeText }), "one of a text"},
		"NotContent":   {"a certification", alice, by(alice, func(s *packet.Signature) { s.SigType = packet.SigTypeGenericCert }), "one of a text"},
		"Lapsed":       {"the signature is expired", alice, by(alice, func(s *packet.Signature) { s.SigLifetimeSecs = &day }), "it is expired"},
		"Future":       {"made tomorrow", alice, by(alice, func(s *packet.Signature) { s.CreationTime = today.Add(48 * time.Hour) }), "future"},
		"OlderThanKey": {"made before the key", alice, by(alice, func(s *packet.Signature) { s.CreationTime = born.Add(-time.Hour) }), "older than its key"},
		"Critical": {"a condition", alice, by(alice, func(s *packet.Signature) {
			s.Notations = []*packet.Notation{{Name: "only@example.org", Value: []byte("x"), IsCritical: true, IsHumanReadable: true}}
		}), "condition"},
		"Note": {"a remark", alice, by(alice, func(s *packet.Signature) {
			s.Notations = []*packet.Notation{{Name: "note@example.org", Value: []byte("x"), IsHumanReadable: true}}
		}), ""},
		"Small":         {"RSA of 1024 bits", small, by(small, nil), "too weak"},
		"Expired":       {"the key was valid then, but not now", expired, by(expired, nil), "expired"},
		"Revoked":       {"stolen", revoked, by(revoked, nil), "revoked"},
		"Retired":       {"retired later", retired, by(retired, nil), "revoked"},
		"Subkey":        {"with its subkey", sub, pgpSigning(t, sub.Subkeys[0].PrivateKey, nil), ""},
		"RevokedSubkey": {"with a revoked subkey", gone, pgpSigning(t, gone.Subkeys[0].PrivateKey, nil), "revoked"},
		"BesideRevoked": {"the primary key is still good", gone, by(gone, nil), ""},
		"Certifier":     {"a key that only certifies", certifier, by(certifier, nil), "not made for signatures"},
		"Two": {"which one counts", alice, func(payload string) string {
			return pgpArmor(t, made(t, alice, payload), made(t, alice, payload))
		}, "several"},
		"None":    {"empty", alice, func(string) string { return pgpArmor(t) }, "malformed"},
		"Garbage": {"no armor", alice, func(string) string { return "-----BEGIN PGP SIGNATURE-----\n\n???\n-----END PGP SIGNATURE-----\n" }, "malformed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := keys(t, map[string][]byte{"key.asc": public(t, tc.trusted)})
			by, err := k.Commit(signCommit(bareHeader, bareBody, tc.sign), today)
			checkVerdict(t, tc.reason, by, err, tc.text)
		})
	}
}

// made is a signature as a packet.
func made(t *testing.T, e *openpgp.Entity, payload string) *packet.Signature {
	t.Helper()
	s := &packet.Signature{
		Version: 4, SigType: packet.SigTypeBinary, PubKeyAlgo: e.PrimaryKey.PubKeyAlgo, Hash: crypto.SHA512,
		CreationTime: born.Add(time.Hour), IssuerKeyId: &e.PrimaryKey.KeyId,
	}
	hash := s.Hash.New()
	hash.Write([]byte(payload))
	if err := s.Sign(hash, e.PrivateKey, plainly()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestM17TagsThatAreRefused(t *testing.T) {
	alice := sshKeyOf(t, 1)
	k := keys(t, map[string][]byte{"alice.pub": []byte(authorized(alice.PublicKey()))})
	sign := sshSigning(t, alice, nil)
	signed := func(text string) string { return text + sign(text) }
	commit := strings.Repeat("1", 40)
	good := signed(bareTag)
	cases := map[string]struct{ reason, raw, text string }{
		"Good":         {"the normal case", good, ""},
		"Unsigned":     {"nothing to verify", bareTag, "not signed"},
		"Renamed":      {"another tag under this name", signed(strings.Replace(bareTag, "v1.0.0", "v0.9.0", 1)), `made as the tag "v0.9.0"`},
		"OtherCommit":  {"another commit", signed(strings.ReplaceAll(bareTag, "1111", "2222")), "points at the commit"},
		"Tree":         {"no commit", signed(strings.Replace(bareTag, "type commit", "type tree", 1)), "points at the tree"},
		"Nested":       {"a tag of a tag", signed(strings.Replace(bareTag, "type commit", "type tag", 1)), "points at the tag"},
		"OtherMessage": {"other words", strings.Replace(good, "release", "rerelease", 1), "does not match"},
		"Two":          {"which one counts", good + sign(bareTag), "two signatures"},
		"Quoted":       {"a signature in the message", signed(bareTag + "-----BEGIN PGP SIGNATURE-----\nx\n"), "two signatures"},
		"Trailing":     {"words after the signature", good + "more\n", "not one armored block"},
		"CRLF":         {"some readers take it off", strings.ReplaceAll(good, "SIGNATURE-----\n", "SIGNATURE-----\r\n"), "carriage return"},
		"Header":       {"where commits have it", signed(strings.Replace(bareTag, "\n\n", "\ngpgsig x\n\n", 1)), "not where it belongs"},
		"TwoObjects":   {"which one is taken", signed("object " + commit + "\n" + bareTag), "not where it belongs"},
		"TwoNames":     {"which one counts", signed(strings.Replace(bareTag, "tagger", "tag v2\ntagger", 1)), "not where it belongs"},
		"NoTagger":     {"who, and when", signed(strings.Replace(bareTag, "tagger a <a@example.org> 1767225600 +0000\n", "", 1)), "does not say when"},
		"Commit":       {"a signed commit is no tag", string(signCommit(bareHeader, bareBody, sign)), "not where it belongs"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			by, err := k.Tag([]byte(tc.raw), "v1.0.0", commit, today)
			checkVerdict(t, tc.reason, by, err, tc.text)
		})
	}
	if by, err := k.Commit([]byte(good), today); err == nil {
		t.Errorf("a signed tag is no commit: %s", by)
	}
	if by, err := (Keys{}).Commit(signCommit(bareHeader, bareBody, sign), today); fetch.ReasonOf(err) != fetch.Unverified {
		t.Errorf("trusted without keys: %q %v", by, err)
	}
}

func TestM14KeysThatAreRefused(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	alice := sshKeyOf(t, 1)
	line := authorized(alice.PublicKey())
	small, err := ssh.NewPublicKey(&rsaKey(t, 1024).PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	pgp := public(t, pgpKeyOf(t, 1))
	cases := map[string]struct {
		reason, content, text string
	}{
		"Empty":       {"nothing", " \n", "it is empty"},
		"Comment":     {"nothing", "# alice\n", "no public key"},
		"Garbage":     {"no key", "CANARY", "line 1"},
		"Binary":      {"no key", "\x00\xff\xfeCANARY", "no PGP public key"},
		"Cut":         {"half a key", line[:len(line)/2], "line 1"},
		"SecondLine":  {"one of two", line + "ssh-ed25519 CANARY\n", "line 2"},
		"TypeLies":    {"the type and the key differ", strings.Replace(line, "ssh-ed25519", "ssh-rsa", 1), "line 1"},
		"Small":       {"RSA of 1024 bits", authorized(small), "1024 bits"},
		"Authority":   {"certificates are not supported", "*@example.org cert-authority " + line, "option cert-authority"},
		"AuthorityBy": {"as authorized_keys has it", "cert-authority " + line, "options instead of principals"},
		"Options":     {"as authorized_keys has it", `from="10.0.0.0/8" ` + line, "options instead of principals"},
		"Option":      {"an unknown one", "alice touch-required " + line, "option touch-required"},
		"Time":        {"malformed", `alice valid-before="soon" ` + line, "the time soon is malformed"},
		"SSHPrivate":  {"the wrong half", "-----BEGIN OPENSSH PRIVATE KEY-----\nCANARY\n-----END OPENSSH PRIVATE KEY-----\n", "private key"},
		"PGPPrivate":  {"the wrong half", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nCANARY\n-----END PGP PRIVATE KEY BLOCK-----\n", "private key"},
		"PGPCut":      {"half a key", string(pgp[:len(pgp)/2]), "no PGP public key"},
		"PGPMessage":  {"something else", "-----BEGIN PGP MESSAGE-----\n\nCANARY\n-----END PGP MESSAGE-----\n", "no public key"},
		"PGPSecond":   {"one of two", string(pgp) + "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nCANARY\n-----END PGP PUBLIC KEY BLOCK-----\n", "no PGP public key"},
		"Certificate": {"an X.509 one", "-----BEGIN CERTIFICATE-----\nCANARY\n-----END CERTIFICATE-----\n", "line 1"},
		"Huge":        {"more than a Secret holds", strings.Repeat("#", 2<<20), "more than 1048576 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseKeys(map[string][]byte{"a-good.pub": []byte(line), "team.asc": []byte(tc.content)})
			if fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), `entry "team.asc"`) ||
				!strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	if _, err := ParseKeys(nil); fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), "no keys") {
		t.Errorf("nothing to verify with: %v", err)
	}
	if _, err := ParseKeys(map[string][]byte{"a": pgp, "b": pgp}); fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), "twice") {
		t.Errorf("two copies: %v", err)
	}
}

// TestPrincipals has the lines that people write.
func TestPrincipals(t *testing.T) {
	line := strings.TrimSpace(authorized(sshKeyOf(t, 1).PublicKey()))
	for text, want := range map[string]string{
		line:                                "entry",
		line + " alice":                     "alice",
		line + " alice of the team":         "alice of the team",
		"alice " + line:                     "alice",
		"alice,bob " + line + " comment":    "alice,bob",
		`"alice smith,bob" ` + line:         "alice smith,bob",
		`* namespaces="git" ` + line:        "*",
		"\t alice\t" + line + "\r":          "alice",
		"ssh-ed25519 " + line:               "",
		fmt.Sprintf(`"%s" %s`, "x=y", line): "",
	} {
		found, err := readSigners("entry", text)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q is %q", text, found[0].principal)
		case want != "" && (err != nil || len(found) != 1 || found[0].principal != want):
			t.Errorf("%q: %v %v", text, found, err)
		}
	}
}
