package accesslog

import "strings"

// A slot is one fact that some format has under some key.
type slot uint8

const (
	sNone slot = iota
	sClientIP
	sRemote
	sXFF
	sWanted
	sTime      // the best clock of the format
	sTimeOther // a second choice: a coarser clock, or the logger's instead of the request's
	sTimeLast  // the last resort
	sMethod
	sRequest
	sURI  // path and query
	sPath // path alone, or whatever a site calls path
	sURL  // absolute
	sArgs
	sHost
	sHostOther
	sStatus
	sBytes
	sAgent
	sReferer
	sAccept
	sDest
	sFetchUser
	sPurpose
	sInsecure
	sType
	sUpgrade
	sCache
	sCacheHit
	sCacheLookup
	sRequestID
	sInsertID
	sASN
	sSeconds
	sMillis
	sNanos
	sSub
	sRowType
	sSource
	sInner
	sResource
	sEvent
	sReason
	sKeyType
	sKey
	sSite
	sRoute
	sLeftOut
	numSlots
)

type slots [numSlots]string

// A group is an object whose keys mean something, one bit each so that a walk
// can tell which occurred.
type group uint16

const (
	gRoot        group = 1 << iota
	gRequest           // Caddy's "request"
	gHeaders           // its headers
	gRespHeaders       // and the answer's
	gHTTP              // Google's httpRequest
	gPayload           // Google's jsonPayload
	gResource
	gPolicy
	gRemoteInfo
	gProxy // Vercel's
	gTraefik
	gCloudflare
	gGateway
	gEnvoy
)

// lookup says where the value of a key goes. The table is one switch per group:
// it runs for every key of every line.
func (w *walker) lookup(g group, key string) (slot, group) {
	switch g {
	case gRoot, gPayload:
		return w.root(g, key)
	case gRequest:
		switch key {
		case "client_ip":
			return sClientIP, 0
		case "remote_ip", "remote_addr":
			return sRemote, 0
		case "method":
			return sMethod, 0
		case "host":
			return sHost, 0
		case "uri":
			return sURI, 0
		case "headers":
			return sNone, gHeaders
		}
	case gHeaders:
		return w.anyCaseHeader(key), 0
	case gRespHeaders:
		if strings.EqualFold(key, "content-type") {
			return sType, 0
		}
	case gHTTP:
		switch key {
		case "requestMethod":
			return sMethod, 0
		case "requestUrl":
			return sURL, 0
		case "status":
			return sStatus, 0
		case "responseSize":
			return sBytes, 0
		case "userAgent":
			return sAgent, 0
		case "remoteIp":
			return sClientIP, 0
		case "referer":
			return sReferer, 0
		case "latency":
			return sSeconds, 0
		case "cacheHit":
			return sCacheHit, 0
		case "cacheLookup":
			return sCacheLookup, 0
		}
	case gResource:
		if key == "type" {
			return sResource, 0
		}
	case gPolicy:
		if key == "remoteIpInfo" {
			return sNone, gRemoteInfo
		}
	case gRemoteInfo:
		if key == "asn" {
			return sASN, 0
		}
	case gProxy:
		switch key {
		case "timestamp":
			return sTime, 0
		case "method":
			return sMethod, 0
		case "host":
			return sHost, 0
		case "path":
			return sURI, 0
		case "userAgent":
			return sAgent, 0
		case "referer":
			return sReferer, 0
		case "statusCode":
			return sStatus, 0
		case "clientIp":
			return sClientIP, 0
		case "vercelCache":
			return sCache, 0
		case "responseByteSize":
			return sBytes, 0
		}
	}
	return sNone, 0
}

// anyCaseHeader maps a request header as a server spelled it. Lower case is made
// on the stack: this runs for every header of every line.
func (w *walker) anyCaseHeader(key string) slot {
	var low [32]byte
	if len(key) > len(low) {
		return sNone
	}
	for i := 0; i < len(key); i++ {
		c := key[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		low[i] = c
	}
	return w.headerSlot(string(low[:len(key)]))
}

// headerSlot maps a request header, in lower case.
func (w *walker) headerSlot(key string) slot {
	if w.header != "" && key == w.header {
		return sWanted
	}
	switch key {
	case "user-agent":
		return sAgent
	case "referer", "referrer":
		return sReferer
	case "accept":
		return sAccept
	case "sec-fetch-dest":
		return sDest
	case "sec-fetch-user":
		return sFetchUser
	case "sec-purpose", "purpose", "x-moz", "x-purpose":
		return sPurpose
	case "upgrade-insecure-requests":
		return sInsecure
	case "upgrade":
		return sUpgrade
	case "x-forwarded-for":
		return sXFF
	}
	return sNone
}

// root maps the keys of a line's top object, of all formats at once: their names
// do not clash in what they mean, except where a comment says so.
func (w *walker) root(g group, key string) (slot, group) {
	if w.nginx != "" && key == w.nginx {
		return sWanted, 0
	}
	switch key {
	case "client_ip", "clientip", "client", "ip", "sourceIp", "source_ip", "remote_ip", "real_ip", "realip", "client_addr":
		return sClientIP, 0
	case "remote_addr", "remoteAddr", "remote_address", "remote", "remoteIp":
		return sRemote, 0
	case "http_x_forwarded_for", "x_forwarded_for", "xff", "x-forwarded-for":
		return sXFF, 0
	case "msec", "time_iso8601", "iso8601":
		return sTime, 0
	case "ts", "time_local", "@timestamp", "datetime", "date_time":
		return sTimeOther, 0
	case "time", "timestamp", "date":
		return sTimeLast, 0
	case "request_method", "method", "verb", "http_method":
		return sMethod, 0
	case "request":
		return sRequest, gRequest
	case "request_uri", "requestUri", "uri", "request_path":
		return sURI, 0
	case "path":
		return sPath, 0
	case "url", "request_url":
		return sURL, 0
	case "args", "query_string", "query":
		return sArgs, 0
	case "http_host", "host", "vhost", "domain":
		return sHost, 0
	case "server_name", "domainName":
		return sHostOther, 0
	case "status", "status_code", "code", "response", "statusCode", "response_status":
		return sStatus, 0
	case "body_bytes_sent", "bytes", "size", "length", "responseLength", "response_size":
		return sBytes, 0
	case "bytes_sent":
		return sBytes, 0
	case "http_user_agent", "user_agent", "agent", "userAgent", "useragent":
		return sAgent, 0
	case "http_referer", "http_referrer", "referer", "referrer":
		return sReferer, 0
	case "http_accept", "accept":
		return sAccept, 0
	case "http_sec_fetch_dest", "sec_fetch_dest":
		return sDest, 0
	case "http_sec_fetch_user":
		return sFetchUser, 0
	case "http_sec_purpose", "http_purpose":
		return sPurpose, 0
	case "http_upgrade_insecure_requests":
		return sInsecure, 0
	case "http_upgrade":
		return sUpgrade, 0
	case "sent_http_content_type", "content_type":
		return sType, 0
	case "upstream_cache_status", "cache_status", "cache":
		return sCache, 0
	case "request_id", "requestId", "x_request_id":
		return sRequestID, 0
	case "request_time", "duration", "response_time":
		return sSeconds, 0 // Envoy's duration is in ms: corrected where it is known
	case "asn", "geoip_asn", "geoip2_data_asn":
		return sASN, 0
	case "message", "log", "textPayload", "msg", "MESSAGE":
		return sInner, 0
	case "resp_headers":
		return sNone, gRespHeaders
	case "headers":
		return sNone, gHeaders
	case "type":
		return sRowType, 0
	case "source":
		return sSource, 0
	case "insertId":
		return sInsertID, 0
	case "httpRequest":
		return sNone, gHTTP
	case "jsonPayload":
		return sNone, gPayload
	case "securityPolicyRequestData":
		return sNone, gPolicy
	case "resource":
		return sNone, gResource
	case "proxy":
		return sNone, gProxy
	case "event":
		return sEvent, 0
	case "reason":
		return sReason, 0
	case "key_type":
		return sKeyType, 0
	case "key":
		return sKey, 0
	case "site":
		return sSite, 0
	case "ref":
		return sRequestID, 0
	case "left_out":
		return sLeftOut, 0
	}
	return w.vendor(key)
}
