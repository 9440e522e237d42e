// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"

	"k8s.io/client-go/rest"
	v1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/satchel-dev/satchel/internal/apply/tenant/kubeyaml"
)

// maxKubeconfig bounds a kubeconfig in bytes: one with a hundred contexts is smaller.
const maxKubeconfig = 256 << 10

// KubeconfigError names the entry of a kubeconfig that is not accepted, and why. Of values it
// contains only names and the server's address.
type KubeconfigError struct {
	Entry, Problem string
}

// Error implements error.
func (e *KubeconfigError) Error() string { return "kubeconfig: " + e.Entry + " " + e.Problem }

// Kubeconfig is the current context of a kubeconfig: a server and its user. It comes
// from a tenant, so nothing in it may refer to a file, a program or a proxy.
type Kubeconfig struct {
	server *url.URL
	config *rest.Config
	digest string
}

// Host is the server's host and port, as the kubeconfig writes it.
func (k *Kubeconfig) Host() string { return k.server.Host }

// ParseKubeconfig reads the current context and ignores others. The error is a
// *KubeconfigError.
func ParseKubeconfig(data []byte) (*Kubeconfig, error) {
	if len(data) > maxKubeconfig {
		return nil, &KubeconfigError{Entry: "it", Problem: fmt.Sprintf("has %d bytes, more than the permitted %d", len(data), maxKubeconfig)}
	}
	var file v1.Config
	err := kubeyaml.Unmarshal(data, &file)
	if errors.Is(err, kubeyaml.ErrAlias) {
		return nil, &KubeconfigError{Entry: "it", Problem: err.Error()}
	}
	if err != nil {
		return nil, &KubeconfigError{Entry: "it", Problem: "is not the YAML of a kubeconfig"} // the error may quote a key
	}
	if file.CurrentContext == "" {
		return nil, &KubeconfigError{Entry: "current-context", Problem: "is missing"}
	}
	context, err := named(file.Contexts, "contexts", file.CurrentContext, func(c v1.NamedContext) (string, v1.Context) { return c.Name, c.Context })
	if err != nil {
		return nil, err
	}
	cluster, err := named(file.Clusters, "clusters", context.Cluster, func(c v1.NamedCluster) (string, v1.Cluster) { return c.Name, c.Cluster })
	if err != nil {
		return nil, err
	}
	user, err := named(file.AuthInfos, "users", context.AuthInfo, func(c v1.NamedAuthInfo) (string, v1.AuthInfo) { return c.Name, c.AuthInfo })
	if err != nil {
		return nil, err
	}
	return newKubeconfig(data, entry("clusters", context.Cluster), cluster, entry("users", context.AuthInfo), user)
}

// entry is the path of a named entry, for people.
func entry(list, name string) string { return fmt.Sprintf("%s[%.100q]", list, name) }

// named finds the only entry with a name.
func named[T, V any](list []T, kind, name string, of func(T) (string, V)) (found V, err error) {
	count := 0
	for _, item := range list {
		if itsName, value := of(item); itsName == name {
			found = value
			count++
		}
	}
	switch count {
	case 0:
		return found, &KubeconfigError{Entry: entry(kind, name), Problem: "is missing"}
	case 1:
		return found, nil
	}
	return found, &KubeconfigError{Entry: entry(kind, name), Problem: "is there more than once"}
}

func newKubeconfig(data []byte, clusterEntry string, cluster v1.Cluster, userEntry string, user v1.AuthInfo) (*Kubeconfig, error) {
	if err := refuseAny(refusedOfCluster(cluster), clusterEntry); err != nil {
		return nil, err
	}
	if err := refuseAny(refusedOfUser(user), userEntry); err != nil {
		return nil, err
	}
	server, err := serverOf(clusterEntry+".server", cluster.Server)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	k := &Kubeconfig{server: server, digest: hex.EncodeToString(sum[:16]), config: &rest.Config{
		Host:               server.String(),
		DisableCompression: cluster.DisableCompression,
		BearerToken:        user.Token,
		Username:           user.Username,
		Password:           user.Password,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: cluster.TLSServerName, CAData: cluster.CertificateAuthorityData,
			CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
		},
	}}
	if _, err := rest.TLSConfigFor(k.config); err != nil {
		return nil, &KubeconfigError{Entry: clusterEntry + ".certificate-authority-data", Problem: "cannot be read"}
	}
	if len(user.ClientCertificateData)+len(user.ClientKeyData) == 0 {
		return k, nil
	}
	if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
		return nil, &KubeconfigError{Entry: userEntry, Problem: "needs client-certificate-data and client-key-data that fit together"}
	}
	return k, nil
}

// refusedEntry is a standard kubeconfig entry that is not accepted here.
type refusedEntry struct {
	name  string
	there bool
	why   string
}

func refuseAny(entries []refusedEntry, of string) error {
	for _, e := range entries {
		if e.there {
			return &KubeconfigError{Entry: of + "." + e.name, Problem: e.why}
		}
	}
	return nil
}

const (
	namesFile = "names a file, and none is read: put the content into "
	acts      = "is not accepted: name the ServiceAccount to impersonate in spec.target.serviceAccountName"
)

func refusedOfCluster(c v1.Cluster) []refusedEntry {
	return []refusedEntry{
		{"insecure-skip-tls-verify", c.InsecureSkipTLSVerify, "is not accepted: put the cluster's authority into certificate-authority-data"},
		{"certificate-authority", c.CertificateAuthority != "", namesFile + "certificate-authority-data"},
		{"proxy-url", c.ProxyURL != "", "is not accepted: the API server has to be reachable without a proxy"},
	}
}

func refusedOfUser(u v1.AuthInfo) []refusedEntry {
	return []refusedEntry{
		{"exec", u.Exec != nil, "is not accepted, and nothing is executed: use a token or a client certificate"},
		{"auth-provider", u.AuthProvider != nil, "is not accepted: use a token or a client certificate"},
		{"tokenFile", u.TokenFile != "", namesFile + "token"},
		{"client-certificate", u.ClientCertificate != "", namesFile + "client-certificate-data"},
		{"client-key", u.ClientKey != "", namesFile + "client-key-data"},
		{"as", u.Impersonate != "", acts},
		{"as-uid", u.ImpersonateUID != "", acts},
		{"as-groups", len(u.ImpersonateGroups) > 0, acts},
		{"as-user-extra", len(u.ImpersonateUserExtra) > 0, acts},
	}
}

// serverOf reads the server's address. Host names and addresses are
// checked when a connection is made.
func serverOf(entry, text string) (*url.URL, error) {
	server, err := url.Parse(text)
	switch {
	case text == "":
		return nil, &KubeconfigError{Entry: entry, Problem: "is missing"}
	case err != nil, server.Hostname() == "":
		return nil, &KubeconfigError{Entry: entry, Problem: "is no URL such as https://example.org:6443"}
	case server.Scheme != "https":
		return nil, &KubeconfigError{Entry: entry, Problem: "has to begin with https://: anything else would show the credentials to everybody on the way"}
	case server.User != nil, server.RawQuery != "", server.ForceQuery, server.Fragment != "":
		return nil, &KubeconfigError{Entry: entry, Problem: "must not have a user, a query or a fragment"}
	}
	return server, nil
}
