// A static build of Astro: links that the browser follows, and a ClientRouter.
import { arrived, back, open, quiet, run, step } from './browser.mjs'

const { context, page, close } = await open()
const at = (path) => run.site + path
const go = (name, play) => step(context, name, play)
const heading = (text) => page.waitForFunction((t) => document.querySelector('h1')?.textContent === t, text)
const ahead = (path) => page.waitForResponse((r) => new URL(r.url()).pathname === path)

try {
  await go('listing', () => page.goto(at('/')))
  await go('ten plain links and back', async () => {
    let again = 0
    for (let i = 0; i < 10; i++) {
      await page.click(`#plain-${i}`)
      await arrived(page, `/article/${i}/`)
      again += await back(page, '/')
    }
    return { again }
  })
  await go('ten links under the mouse', async () => {
    for (let i = 0; i < 10; i++) await Promise.all([ahead(`/article/${10 + i}/`), page.hover(`#hover-${i}`)])
  })
  await go('ten links come into view', async () => {
    const all = Array.from({ length: 10 }, (_, i) => ahead(`/article/${20 + i}/`))
    await Promise.all([...all, page.locator('#view-9').scrollIntoViewIfNeeded()])
  })
  await go('a click on a link fetched ahead', async () => {
    await page.click('#hover-0')
    await arrived(page, '/article/10/')
    return { title: await page.title() }
  })
  await go('a page with ClientRouter', () => page.goto(at('/app/0/')))
  await go('ten soft clicks', async () => {
    for (let i = 1; i <= 10; i++) {
      await page.click(`#soft-${i}`)
      await heading(`View ${i}`)
    }
  })
  await go('a soft click on a link fetched ahead', async () => {
    await Promise.all([ahead('/app/11/'), page.hover('#ahead-11')])
    await quiet(context)
    await page.click('#ahead-11')
    await heading('View 11')
  })
  await go('a link that says reload', async () => {
    await page.click('#hard')
    await arrived(page, '/article/29/')
  })
} finally {
  await close()
}
