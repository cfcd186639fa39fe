package registry

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

// The requests and signatures of AWS's test suite for Signature Version 4.
func TestSignatureOfAWS(t *testing.T) {
	const session = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
	for name, c := range map[string]struct {
		method, session, contentType, body string
		want                               string
	}{
		"get-vanilla":                {method: "GET", want: "SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"post-vanilla":               {method: "POST", want: "SignedHeaders=host;x-amz-date, Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		"post-x-www-form-urlencoded": {method: "POST", contentType: "application/x-www-form-urlencoded", body: "Param1=value1", want: "SignedHeaders=content-type;host;x-amz-date, Signature=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
		"post-sts-header-before":     {method: "POST", session: session, want: "SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
	} {
		request := testkit.Need(http.NewRequestWithContext(t.Context(), c.method, "https://example.amazonaws.com/", strings.NewReader(c.body)))(t)
		if c.contentType != "" {
			request.Header.Set("Content-Type", c.contentType)
		}
		key{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", c.session}.signAWS(request, []byte(c.body), "service", "us-east-1", time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))
		if got, want := request.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "+c.want; got != want {
			t.Errorf("%s:\n%s, want\n%s", name, got, want)
		}
		if got := request.Header.Get("X-Amz-Date") + request.Header.Get("X-Amz-Security-Token"); got != "20150830T123600Z"+c.session {
			t.Errorf("%s: headers %q", name, got)
		}
	}
}

// The example of Alibaba Cloud's document on signature method V3.
func TestSignatureOfAlibaba(t *testing.T) {
	request := testkit.Need(http.NewRequestWithContext(t.Context(), http.MethodPost, "https://ecs.cn-shanghai.aliyuncs.com/?ImageId=win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd&RegionId=cn-shanghai", nil))(t)
	at := time.Date(2023, 10, 26, 10, 22, 32, 0, time.UTC)
	key{id: "YourAccessKeyId", secret: "YourAccessKeySecret"}.signAlibaba(request, nil, "RunInstances", "2014-05-26", "3156853299f313e23d1673dc12e1703d", at)
	const want = "ACS3-HMAC-SHA256 Credential=YourAccessKeyId,SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"
	if got := request.Header.Get("Authorization"); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	key{"id", "secret", "session"}.signAlibaba(request, nil, "a", "v", "n", at)
	if !strings.Contains(request.Header.Get("Authorization"), ";x-acs-security-token;") {
		t.Error("the session token is not signed")
	}
}
