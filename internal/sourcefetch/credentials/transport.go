// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/sha256"
	"fmt"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Transport identifies what Secrets say about which server is the right one for a source: the certificate authorities, the
// host keys and the proxy. A user who changes them can replace the content. Logins and client certificates are not
// included: the server decides what it answers to whom. It is empty if nothing of that kind is in Secrets, or if a digest or a
// signature identifies the content. The Secrets have to be read before.
//
// The address of a proxy may be guessed from its hash, so that the version of its Secret stands for it.
func (s *Secrets) Transport(source v1alpha1.Source) string {
	certificates, proxy := transportSecrets(source)
	if effective.Identified(&source) {
		return ""
	}
	return s.TransportBy(certificates, proxy)
}

// TransportBy identifies what these Secrets say about which server is the right one; "" for nothing.
func (s *Secrets) TransportBy(certificates, proxy *v1alpha1.LocalReference) string {
	if certificates == nil && proxy == nil {
		return ""
	}
	hash, found := sha256.New(), false
	if certificates != nil {
		if secret := s.read[certificates.Name]; secret != nil {
			for _, key := range []string{keyCA, keyKnownHosts} {
				found = found || len(secret.Data[key]) > 0
				fmt.Fprintf(hash, "%s %d\n%s\n", key, len(secret.Data[key]), secret.Data[key])
			}
		}
	}
	if proxy != nil {
		found = true
		fmt.Fprintln(hash, "proxy", s.Version(proxy.Name))
	}
	if !found {
		return ""
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil))
}

// transportSecrets are the Secrets with authorities or host keys, and with a proxy.
func transportSecrets(source v1alpha1.Source) (certificates, proxy *v1alpha1.LocalReference) {
	switch {
	case source.Image != nil:
		return source.Image.CertSecretRef, source.Image.ProxySecretRef
	case source.Git != nil:
		return source.Git.SecretRef, source.Git.ProxySecretRef
	case source.HTTP != nil:
		return source.HTTP.CertSecretRef, source.HTTP.ProxySecretRef
	case source.Helm != nil:
		return source.Helm.CertSecretRef, source.Helm.ProxySecretRef
	}
	return nil, nil
}
