-- http-request lua.stile URL
-- Asks Stile's forward-auth endpoint about the request and answers in its place
-- when Stile refuses. Stile absent, slow or broken: the request goes on.

local hop = {
	["connection"] = true, ["keep-alive"] = true, ["transfer-encoding"] = true, ["te"] = true,
	["trailer"] = true, ["upgrade"] = true, ["proxy-connection"] = true, ["content-length"] = true,
	["expect"] = true, ["host"] = true, ["x-forwarded-method"] = true, ["x-forwarded-uri"] = true,
	["x-forwarded-host"] = true,
}

core.register_action("stile", { "http-req" }, function(txn, url)
	local sent = {}
	for name, values in pairs(txn.http:req_get_headers()) do
		if not hop[name] then
			local list = {}
			for _, v in pairs(values) do table.insert(list, v) end
			sent[name] = list
		end
	end
	sent["x-forwarded-method"] = { txn.f:method() }
	sent["x-forwarded-uri"] = { txn.f:pathq() }
	sent["x-forwarded-host"] = { txn.f:req_hdr("host") or "" }

	local ok, answer = pcall(function()
		return core.httpclient():get { url = url, headers = sent, timeout = 1000 }
	end)
	if not ok or not answer then
		return
	end
	-- 503 with Retry-After is Stile's own (store.on_error: closed); HAProxy's for
	-- an absent Stile has none.
	local refused = answer.status == 429 or (answer.status == 503 and answer.headers["retry-after"])
	if not refused then
		return
	end
	local reply = txn:reply { status = answer.status, reason = answer.reason }
	for name, values in pairs(answer.headers) do
		if not hop[name] then
			for _, v in pairs(values) do reply:add_header(name, v) end
		end
	end
	reply:set_body(answer.body or "")
	txn:done(reply)
end, 1)
