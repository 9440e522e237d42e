// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"
)

// Reach is where a kubeconfig leads, and as which user: what stays when credentials are renewed. It may contain a credential,
// so that only keyed hashes of it may be shown or stored.
type Reach struct {
	// Server is its URL, and the name that its certificate has to have.
	Server string
	// Authorities are the certificate authorities that its certificate may be from, in any order.
	Authorities string
	// User is the subject of the client certificate and of the token, the name, or else the credential.
	User string
}

// Reach returns that of the kubeconfig.
func (k *Kubeconfig) Reach() Reach {
	return Reach{
		Server:      k.server.String() + "\n" + k.config.ServerName,
		Authorities: authorities(k.config.CAData),
		User:        strings.Join([]string{certificateSubject(k.config.CertData), tokenSubject(k.config.BearerToken), k.config.Username}, "\n"),
	}
}

// authorities are the certificates of a PEM file, in the order of their contents.
func authorities(data []byte) string {
	var all [][]byte
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		all, data = append(all, block.Bytes), rest
	}
	slices.SortFunc(all, bytes.Compare)
	return string(bytes.Join(all, []byte("\n")))
}

// certificateSubject is the name and the groups of a client certificate; else the whole.
func certificateSubject(data []byte) string {
	block, _ := pem.Decode(data)
	if block == nil {
		return string(data)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return string(data)
	}
	return string(certificate.RawSubject)
}

// tokenSubject is the issuer and subject of a JSON web token; else the whole. The signature is not checked: the server, which
// counts as well, does that.
func tokenSubject(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return token
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return token
	}
	var claims struct {
		Issuer  string `json:"iss"`
		Subject string `json:"sub"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil || claims.Issuer == "" || claims.Subject == "" {
		return token
	}
	encoded, err := json.Marshal(claims)
	if err != nil {
		return token
	}
	return string(encoded)
}
