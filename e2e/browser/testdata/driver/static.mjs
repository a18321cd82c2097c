// A site without a framework: everything that a browser itself does.
import { arrived, back, open, quiet, run, step } from './browser.mjs'

const { context, page, close } = await open()
const at = (path) => run.site + path
const go = (name, play) => step(context, name, play)

try {
  await go('typed address', () => page.goto(at('/')))
  await go('ten links', async () => {
    let again = 0
    for (let i = 0; i < 10; i++) {
      await page.click(`#link-${i}`)
      await arrived(page, `/page/${i}`)
      again += await back(page, '/')
    }
    return { again }
  })
  await go('reload', () => page.reload())
  await go('link, back, forward', async () => {
    await page.click('#link-0')
    await arrived(page, '/page/0')
    await page.goBack({ waitUntil: 'commit' })
    await page.goForward({ waitUntil: 'commit' })
    await page.goBack({ waitUntil: 'commit' })
  })
  await go('new tab', async () => {
    const [tab] = await Promise.all([context.waitForEvent('page'), page.click('#link-1', { modifiers: ['Control'] })])
    await tab.waitForLoadState()
    await tab.close()
  })
  await go('form', async () => {
    await page.fill('#q', 'hedges')
    await page.press('#q', 'Enter')
    await arrived(page, '/search')
    return { title: await page.title() }
  })
  await page.goBack({ waitUntil: 'commit' })
  await go('redirect chain', async () => {
    await page.click('#chain')
    await arrived(page, '/page/29')
  })
  await go('frames', () => page.goto(at('/frames')))
  await go('page script', async () => {
    await page.goto(at('/script'))
    await page.waitForFunction(() => document.body.dataset.done)
  })
  await go('rel=prefetch', () => page.goto(at('/prefetch')))
  await go('speculation rules', async () => {
    await page.goto(at('/speculate'))
    await quiet(context, 1500)
  })
  await go('click on a prefetched link', async () => {
    await page.click('#fetched')
    await arrived(page, '/page/20')
  })
  await go('download', async () => {
    await page.goto(at('/downloads'))
    for (const id of ['#marked', '#attachment']) {
      const [file] = await Promise.all([page.waitForEvent('download'), page.click(id)])
      await file.cancel()
    }
  })
  await go('worker installed', async () => {
    await page.goto(at('/worker'))
    await page.waitForFunction(() => navigator.serviceWorker.controller !== null)
  })
  await go('through the worker', async () => {
    await page.goto(at('/page/25'))
    return { title: await page.title() }
  })
} finally {
  await close()
}
